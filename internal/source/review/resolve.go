package review

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// CodeNothing says that there is nothing that an operator could settle.
const CodeNothing = "journal-nothing-to-resolve"

// CodeDrift says that the journal is not what the operator approved a statement about.
const CodeDrift = "journal-resolution-drift"

func refuse(code, field, format string, args ...any) error {
	return &plan.Refusal{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Plan makes the unapproved envelope of an operator's statement about the first open question of
// the journal. Nothing is written.
func Plan(dir, outcome string, now time.Time) ([]byte, error) {
	if !slices.Contains([]string{journal.OutcomeApplied, journal.OutcomeNotApplied, journal.OutcomeUnknown}, outcome) {
		return nil, refuse("input-invalid", "outcome", "must be applied, not-applied or unknown")
	}
	r, err := journal.Read(dir, record.NewLayout())
	if err != nil {
		return nil, err
	}
	doubts := r.Doubts()
	if len(doubts) == 0 {
		return nil, refuse(CodeNothing, "", "the journal has nothing to resolve")
	}
	d := doubts[0]
	reviewed := now.Unix()
	return plan.New(&plan.Resolution{
		Kind: plan.KindResolve, Journal: dir, JournalDigest: r.Digest(),
		Request: plan.Doubt{
			Reason: d.Reason, Method: d.Method, URLDigest: d.URLDigest, Nonce: d.Nonce, Attempt: d.Attempt, AttemptDigest: d.AttemptDigest,
		},
		Outcome: outcome, ReviewedAtUTC: reviewed, NotBeforeUTC: reviewed + journal.ReviewDelay,
	})
}

// Resolve appends an approved statement. It frees the journal for the other files, never the file
// that was interrupted.
func Resolve(dir string, envelope []byte, now time.Time) (journal.Status, error) {
	e, err := plan.Parse(envelope)
	if err != nil {
		return journal.Status{}, err
	}
	p := e.Resolve
	switch {
	case p == nil:
		return journal.Status{}, refuse(plan.CodeEnvelope, "plan.kind", "must be %q", plan.KindResolve)
	case !e.Approval.Confirmed:
		return journal.Status{}, refuse(plan.CodeApproval, "approval.confirmed", "must be true: approve the statement first")
	case filepath.Clean(dir) != p.Journal:
		return journal.Status{}, refuse(CodeDrift, "plan.journal", "names another folder")
	}
	j, err := journal.Open(dir, record.NewLayout(), journal.Options{})
	if err != nil {
		return journal.Status{}, err
	}
	defer j.Close() //nolint:errcheck // everything is synced
	if j.Record().Digest() != p.JournalDigest {
		return journal.Status{}, refuse(CodeDrift, "plan.journal_digest", "does not match the journal as it is now: make a new statement")
	}
	if _, err := j.Resolve(now, time.Unix(p.ReviewedAtUTC, 0), time.Unix(p.NotBeforeUTC, 0), journal.Doubt{
		Reason: p.Request.Reason, Method: p.Request.Method, URLDigest: p.Request.URLDigest, Nonce: p.Request.Nonce,
		Attempt: p.Request.Attempt, AttemptDigest: p.Request.AttemptDigest,
	}, journal.Review{Outcome: p.Outcome, Approval: e.Fingerprint(), Metadata: record.ReviewMetadata()}); err != nil {
		return journal.Status{}, err
	}
	return j.Record().Status(now, ""), nil
}
