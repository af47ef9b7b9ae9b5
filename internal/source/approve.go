package source

import (
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/journal"
)

// Approve flips the confirmation of an envelope and nothing else, once agree, which is shown the
// plan in words and its fingerprint, returns nil. Nothing is sent. The envelope is nil when it was
// not approved.
func Approve(envelope []byte, agree func(words, fingerprint string) error) ([]byte, *Outcome) {
	o := newOutcome("approve")
	refused := func(f *failure) ([]byte, *Outcome) {
		o.Status, o.Code, o.Field, o.Message, o.Next = StatusBlocked, f.code, f.field, f.message, starting("approve", f)
		return nil, o
	}
	e, err := plan.Parse(envelope)
	if err != nil {
		return refused(explain(err))
	}
	o.Fingerprint = e.Fingerprint()
	if err := agree(e.Words(), e.Fingerprint()); err != nil {
		return refused(fail(codeRefused, err.Error()))
	}
	approved, err := e.Approve()
	if err != nil {
		return refused(explain(err))
	}
	o.Status, o.Next = StatusCompleted, approvedNext(e)
	return approved, o
}

// approvedNext is the command that carries out what was approved.
func approvedNext(e *plan.Envelope) string {
	switch {
	case e.Resolve != nil:
		return "ecluse journal resolve DIR --input APPROVED.json"
	case e.Continue != nil:
		return commandGoOn
	}
	return commandApply
}

// Refused is the outcome of a workflow that was not begun.
func Refused(workflow, code, message string) *Outcome {
	o := newOutcome(workflow)
	o.Status, o.Code, o.Message = StatusBlocked, code, message
	o.Next = starting(workflow, fail(code, message))
	return o
}

// Done is the outcome of a workflow that only worked on this machine, and is done.
func Done(workflow string) *Outcome {
	o := newOutcome(workflow)
	o.Status = StatusCompleted
	return o
}

// RefusedBy is the outcome of a workflow that an error ended before it began.
func RefusedBy(workflow string, err error) *Outcome {
	f := explain(err)
	o := Refused(workflow, f.code, f.message)
	o.Field, o.Next = f.field, starting(workflow, f)
	return o
}

// Resolved is the outcome of an operator's statement: what the journal's restriction is now, or why
// the statement was refused.
func Resolved(status journal.Status, err error) *Outcome {
	if err != nil {
		return RefusedBy("journal resolve", err)
	}
	o := newOutcome("journal resolve")
	o.Status = StatusCompleted
	o.FileBatch = &FileBatch{Files: []FileState{}, Backoff: backoffOf(status)}
	return o
}
