package source

import (
	"bytes"
	"encoding/json"

	"github.com/ecluse-gate/ecluse/internal/visible"
)

// The statuses of an Outcome.
const (
	StatusPlanned   = "planned"
	StatusReused    = "reused"
	StatusCompleted = "completed"
	StatusSkipped   = "skipped" // what was to be deleted is absent already
	StatusBlocked   = "blocked" // nothing was written
	StatusPartial   = "partial" // something was written, or its outcome is unknown
	StatusWaiting   = "waiting" // a server restriction is pending, and nothing was written
)

// Outcome is the one JSON document that a command prints. It holds no file content, no local root,
// no header as it was received and no text of the service (S146).
type Outcome struct {
	SchemaVersion string `json:"schema_version"`
	Workflow      string `json:"workflow"`
	Status        string `json:"status"`
	// Code, Field and Message say why it is not done, and Next what to do about it.
	Code    string `json:"code,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
	// BlockedAt is "local-persistence" when a record could not be written and everything stopped
	// there (S104).
	BlockedAt string `json:"blocked_at,omitempty"`
	// Interrupted says that a signal asked the run to end before it was done.
	Interrupted bool `json:"interrupted,omitempty"`
	// Fingerprint is that of the plan that was made or carried out.
	Fingerprint string `json:"fingerprint,omitempty"`
	// WritesPerformed lists what was written, and what may have been, in order.
	WritesPerformed    []Write    `json:"writes_performed"`
	ResourcesRemaining Resources  `json:"resources_remaining"`
	RequestIDs         []string   `json:"request_ids"`
	Warnings           []Warning  `json:"warnings"`
	FileBatch          *FileBatch `json:"file_batch,omitempty"`

	journal string
}

// Write is one write: "create-source", "update-source", "delete-source" or "upload", with
// "-unverified" after it when its outcome is unknown.
type Write struct {
	Action string `json:"action"`
	Name   string `json:"name"`
}

// Resources are what stands on the server after the run, by what is known of it. Only Created is
// owned by the run.
type Resources struct {
	Created    []string `json:"created,omitempty"`
	Updated    []string `json:"updated,omitempty"`
	Reused     []string `json:"reused,omitempty"`
	Unverified []Write  `json:"unverified,omitempty"`
}

// Warning is a code and a sentence.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// FileBatch is where each file is.
type FileBatch struct {
	Counts  Counts      `json:"counts"`
	Files   []FileState `json:"files"`
	Backoff Backoff     `json:"backoff"`
}

// Counts of files. Accepted overlaps the counts of verification; Ingested counts only what an
// acknowledgement or an exact readback proved (S92).
type Counts struct {
	Total        int `json:"total"`
	Confirmed    int `json:"confirmed"`
	Ingested     int `json:"ingested"`
	Accepted     int `json:"accepted"`
	Reused       int `json:"reused"`
	Pending      int `json:"pending"`
	Rejected     int `json:"rejected"`
	Failed       int `json:"failed"`
	Unverified   int `json:"unverified"`
	NotAttempted int `json:"not_attempted"`
}

// Backoff is the journal's restriction (S108, S109): clear, waiting, elapsed or unresolved.
type Backoff struct {
	Status           string `json:"status"`
	NotBeforeUTC     *int64 `json:"not_before_utc,omitempty"`
	SecondsRemaining *int64 `json:"seconds_remaining,omitempty"`
	Reason           string `json:"reason,omitempty"`
}

func newOutcome(workflow string) *Outcome {
	return &Outcome{
		SchemaVersion: "1.0", Workflow: workflow, WritesPerformed: []Write{}, RequestIDs: []string{}, Warnings: []Warning{},
	}
}

// Document is the outcome as one indented JSON document. Every member is one of ours: none can hold
// a secret (S145). Names that could deceive a reader are escaped.
func (o *Outcome) Document() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		return nil, err
	}
	return visible.JSON(b.Bytes()), nil
}

// Journal is the folder of the journal that the workflow held, "" when it held none.
func (o *Outcome) Journal() string { return o.journal }

// Warn adds a warning of the program around the workflow.
func (o *Outcome) Warn(code, message string) { o.warn(code, message) }

// restricted says that the journal's restriction has not passed yet.
func (o *Outcome) restricted() bool {
	return o.FileBatch != nil && o.FileBatch.Backoff.Status == "waiting"
}

func (o *Outcome) warn(code, message string) {
	for _, w := range o.Warnings {
		if w.Code == code && w.Message == message {
			return
		}
	}
	o.Warnings = append(o.Warnings, Warning{Code: code, Message: message})
}
