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

// CodeClock says that the clock stands before the receipt of an answer.
const CodeClock = "journal-clock-behind"

func refuse(code, field, format string, args ...any) error {
	return &plan.Refusal{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Plan makes the unapproved envelope of an operator's statement about the first open question of
// the journal, or, with endWait, about the first restriction that the operator can end before its
// time. Nothing is written.
func Plan(dir, outcome string, endWait bool, now time.Time) ([]byte, error) {
	if !slices.Contains([]string{journal.OutcomeApplied, journal.OutcomeNotApplied, journal.OutcomeUnknown}, outcome) {
		return nil, refuse("input-invalid", "outcome", "must be applied, not-applied or unknown")
	}
	r, err := journal.Read(dir, record.NewLayout())
	if err != nil {
		return nil, err
	}
	d, err := choose(r, endWait, now)
	if err != nil {
		return nil, err
	}
	reviewed := now.Unix()
	return plan.New(&plan.Resolution{
		Kind: plan.KindResolve, Journal: dir, JournalDigest: r.Digest(),
		Request: plan.Doubt{
			Reason: d.Reason, Method: d.Method, URLDigest: d.URLDigest, Nonce: d.Nonce, Attempt: d.Attempt, AttemptDigest: d.AttemptDigest,
			Restriction: d.Restriction,
		},
		Outcome: outcome, ReviewedAtUTC: reviewed, NotBeforeUTC: r.Earliest(d, time.Unix(reviewed, 0)).Unix(), Evidence: evidence(r, d),
	})
}

// choose finds what a statement can be about.
func choose(r *journal.Record, endWait bool, now time.Time) (journal.Doubt, error) {
	contestable, doubts := r.Contestable(now), r.Doubts()
	switch {
	case r.Displaced():
		return journal.Doubt{}, r.Gate(now)
	case endWait && len(contestable) > 0:
		return contestable[0], nil
	case endWait:
		return journal.Doubt{}, refuse(CodeNothing, "", "no restriction can be ended before its time: only one that was received at a time that has not come yet, or that asks for more than a day")
	case len(contestable) > 0 && contestable[0].Reason == journal.ReasonRegression:
		return journal.Doubt{}, refuse(CodeClock, "", "an answer was received at a time that has not come yet: correct this machine's clock; if it is right, use --end-wait first")
	case len(doubts) == 0:
		return journal.Doubt{}, refuse(CodeNothing, "", "the journal has nothing to resolve")
	}
	return doubts[0], nil
}

// evidence is what the contested restriction says, nil for another doubt.
func evidence(r *journal.Record, d journal.Doubt) *plan.Evidence {
	if d.Restriction == nil {
		return nil
	}
	e, _ := r.Restriction(*d.Restriction)
	return &plan.Evidence{Entry: e.Name, ReceivedAtUTC: e.Timing.ReceivedAtUTC, NotBeforeUTC: e.Timing.NotBeforeUTC, ServerDelaySeconds: e.Timing.ServerDelaySeconds}
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
		Attempt: p.Request.Attempt, AttemptDigest: p.Request.AttemptDigest, Restriction: p.Request.Restriction,
	}, journal.Review{Outcome: p.Outcome, Approval: e.Fingerprint(), Metadata: record.ReviewMetadata()}); err != nil {
		return journal.Status{}, err
	}
	return j.Record().Status(now, ""), nil
}
