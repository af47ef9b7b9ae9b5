// Package mirror copies what clients needed from public registries into a registry of your own:
// jobs that survive a crash, and a worker that acknowledges them or leaves them for later.
// Everything that is not an authority's cooldown, a target's wish to wait or a shutdown spends one
// of a job's attempts; what spends none is bounded by those delays.
package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Job is one file to be mirrored. A queue holds each job once.
type Job struct {
	Ecosystem string `json:"ecosystem"`
	Package   string `json:"package"`
	Version   string `json:"version"`
	File      string `json:"file"`
}

// Kind names the kind of job to River.
func (Job) Kind() string { return "mirror" }

// String is the job in readable form, "ecosystem:name@version file".
func (j Job) String() string { return j.Ecosystem + ":" + j.Package + "@" + j.Version + " " + j.File }

// own is the job without what its parts were cut out of: requests, and whole documents.
func (j Job) own() Job {
	return Job{strings.Clone(j.Ecosystem), strings.Clone(j.Package), strings.Clone(j.Version), strings.Clone(j.File)}
}

// maxField bounds each field of a job.
const maxField = 512

func (j Job) check() error {
	for _, s := range []string{j.Ecosystem, j.Package, j.Version, j.File} {
		if s == "" || len(s) > maxField {
			return fmt.Errorf("job %.200q: each part must have 1 to %d bytes", j.String(), maxField)
		}
	}
	return nil
}

// sealed is a job as a queue holds it, with a checksum over its parts: a row that was damaged on
// disk is dropped, and not taken for another file.
type sealed struct {
	Job
	Sum string `json:"sum"`
}

func seal(j Job) sealed {
	h := sha256.New()
	for _, part := range []string{j.Ecosystem, j.Package, j.Version, j.File} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash does not fail
	}
	return sealed{j, hex.EncodeToString(h.Sum(nil)[:16])}
}

func (s sealed) intact() bool { return seal(s.Job) == s }

// Result is how one run of a job ended; the words are the label of ecluse_mirror_jobs_total.
type Result string

// The results.
const (
	Published Result = "published" // the target took it
	Present   Result = "present"   // the target had it already
	Dropped   Result = "dropped"   // not to be mirrored: denied now, or gone
	Failed    Result = "failed"    // tried again while attempts are left, unless Final
	Snoozed   Result = "snoozed"   // waits, without spending an attempt
)

// Outcome is what a run of a job decided.
type Outcome struct {
	Result Result
	// Wait is how long a snoozed job sleeps at least.
	Wait time.Duration
	// Final reports that a failed job must not be tried again: it is dead.
	Final bool
	// Reason says why, for every result but published and present.
	Reason string
}

// Postponed is a target's wish not to be asked for a while; it concerns the job only, never a
// public authority (R8).
type Postponed struct {
	Delay  time.Duration
	Status int
}

// Error implements error.
func (e *Postponed) Error() string {
	return fmt.Sprintf("the mirror target answered %d with Retry-After %v", e.Status, e.Delay)
}

// Rejected is a target's answer that asking again will not change.
type Rejected struct {
	Status int
	Detail string // the beginning of what the target said
}

// Error implements error.
func (e *Rejected) Error() string {
	return fmt.Sprintf("the mirror target rejected the file with %d: %s", e.Status, e.Detail)
}

// ErrPresent is what a target says that already holds the file.
var ErrPresent = errors.New("the mirror target already has the file")
