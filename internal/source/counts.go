package source

import (
	"strings"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/visible"
	"github.com/ecluse-gate/ecluse/journal"
)

// FileState is where one file is. Ordinal counts from 0, as the records do.
type FileState struct {
	Ordinal      int     `json:"ordinal"`
	Path         string  `json:"path"`
	Upload       string  `json:"upload"`
	Verification string  `json:"verification,omitempty"`
	Attempts     int     `json:"attempts"`
	Status       *int    `json:"status,omitempty"`
	RequestID    *string `json:"request_id,omitempty"`
	FileID       string  `json:"file_id,omitempty"`
}

func fileState(number int, path string, s record.State) FileState {
	return FileState{
		Ordinal: number, Path: path, Upload: s.Upload, Verification: s.Verification, Attempts: s.Attempts,
		Status: s.Status, RequestID: s.RequestID, FileID: s.FileID,
	}
}

// count adds one file.
func (c *Counts) count(s record.State) {
	c.Total++
	switch s.Upload {
	case record.NotAttempted:
		c.NotAttempted++
	case record.Accepted:
		c.Accepted++
	case record.Rejected:
		c.Rejected++
	case record.Unverified:
		if s.Verification != record.Confirmed {
			c.Unverified++
		}
	case record.Reused:
		c.Reused++
	}
	switch s.Verification {
	case record.Confirmed:
		c.Confirmed++
		c.Ingested++
	case record.Pending:
		c.Pending++
	case record.Failed:
		c.Failed++
	}
}

func (b *batch) counts() Counts {
	var c Counts
	for _, f := range b.files {
		c.count(f.state)
	}
	return c
}

// describe puts the batch into the outcome: states, writes, what stands on the server, the
// restriction. before holds the states at the start, so that only this run's writes are listed.
func (b *batch) describe(before []record.State) {
	o := b.out
	o.FileBatch = &FileBatch{Counts: b.counts(), Files: []FileState{}, Backoff: Backoff{Status: string(journal.Clear)}}
	for i, f := range b.files {
		o.FileBatch.Files = append(o.FileBatch.Files, fileState(f.number, f.Path, f.state))
		mine := before == nil || f.state.Attempts > before[i].Attempts
		unverified := f.state.Upload == record.Unverified && f.state.Verification != record.Confirmed
		switch {
		case unverified && f.unsent:
			o.warn(codeNotSent, "nothing of "+quote(f.Path)+" was sent; its attempt may be in the journal, and then no later run sends it")
		case unverified:
			w := Write{Action: "upload-unverified", Name: f.Path}
			o.ResourcesRemaining.Unverified = append(o.ResourcesRemaining.Unverified, w)
			if mine && f.state.Attempts > 0 {
				o.WritesPerformed = append(o.WritesPerformed, w)
			}
		case f.state.Upload == record.Accepted || f.state.Attempts > 0 && f.state.Verification == record.Confirmed:
			o.ResourcesRemaining.Created = append(o.ResourcesRemaining.Created, f.Path)
			if mine {
				o.WritesPerformed = append(o.WritesPerformed, Write{Action: "upload", Name: f.Path})
			}
		case f.state.Upload == record.Reused:
			o.ResourcesRemaining.Reused = append(o.ResourcesRemaining.Reused, f.Path)
		}
	}
	if len(o.ResourcesRemaining.Unverified) > 0 {
		o.warn(codeRetryUnproven, "the outcome of an upload is unknown; the file is never sent again")
	}
	if b.scribe.j != nil {
		b.looked = b.listed
		o.FileBatch.Backoff = backoffOf(b.scribe.j.Record().Status(b.tool.Clock.Now(), ""))
	}
}

func backoffOf(s journal.Status) Backoff {
	return Backoff{Status: string(s.State), NotBeforeUTC: s.NotBeforeUTC, SecondsRemaining: s.SecondsRemaining, Reason: s.Reason}
}

// complete says that nothing is missing: every file is confirmed, and the last inventory succeeded
// (S88).
func (b *batch) complete() bool {
	return b.counts().Confirmed == len(b.files) && b.listed
}

// touched says that something was accepted, or that the outcome of something is unknown (S89).
func (b *batch) touched() bool {
	c := b.counts()
	return c.Accepted > 0 || c.Unverified > 0
}

func (b *batch) digest(f *item) string { return plan.Digest(f.File) }

// quote keeps a path in a message readable and on one line.
func quote(path string) string {
	if len(path) > 200 {
		return visible.Quote(strings.ToValidUTF8(path[:200], "")) + "…"
	}
	return visible.Quote(path)
}
