package source

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/recovery"
)

// session is one workflow on one source: who talks, what is recorded, and what is reported.
type session struct {
	tool   *Tool
	out    *Outcome
	report *progress.Reporter
	scribe *scribe
	client *search.Client
	name   string // of the source
	// looked says that the states of the files are those that the service shows now.
	looked bool
	// first is the failure that the outcome will name; later ones become warnings (S90).
	first *failure
	// ended is why the workflow was asked to end, nil while it was not.
	ended func() error
}

func (t *Tool) begin(ctx context.Context, workflow string) *session {
	return &session{tool: t, out: newOutcome(workflow), report: t.Report(workflow), scribe: &scribe{now: t.Clock.Now}, ended: ctx.Err}
}

// interrupted says that a signal asked the workflow to end.
func (s *session) interrupted() bool { return errors.Is(s.ended(), context.Canceled) }

// connect makes the client. Nothing is sent and no token is asked for.
func (s *session) connect(service search.Service, source string) error {
	client, err := s.tool.Connect(service, s.scribe)
	s.client, s.name = client, source
	return err
}

// failed keeps the first failure; later ones become warnings.
func (s *session) failed(err error) {
	f := explain(err)
	if s.interrupted() && errors.Is(err, context.Canceled) && f.code != codeInterrupted {
		f.code, f.message = codeInterrupted, "interrupted: "+f.message
	}
	if s.first == nil {
		s.first = f
	} else {
		s.out.warn(f.code, f.message)
	}
	if local := unrecorded(err); local != nil && (local.code != f.code || local.message != f.message) {
		s.out.warn(local.code, local.message)
	}
}

// finish closes the outcome. wrote says that something was written or may have been.
func (s *session) finish(done string, wrote bool) *Outcome {
	o := s.out
	o.RequestIDs = append(o.RequestIDs, s.scribe.ids...)
	if s.scribe.j != nil {
		o.journal = s.scribe.j.Dir()
	}
	o.Status = done
	state := progress.Completed
	if f := s.first; f != nil {
		o.Code, o.Field, o.Message, o.BlockedAt = f.code, f.field, f.message, f.blockedAt
		o.Status, state, o.Interrupted = StatusBlocked, progress.Blocked, s.interrupted()
		switch {
		case wrote:
			o.Status, state = StatusPartial, progress.Partial
		case f.restriction != nil && f.restriction.State == journal.Waiting, o.restricted():
			o.Status, state = StatusWaiting, progress.Waiting
		}
	}
	switch {
	case s.first != nil:
		o.Next = s.next(s.first, wrote)
	case done == StatusPlanned:
		o.Next = "approve it: " + commandApprove
	}
	s.report.Finish(state)
	if s.report.Broken() {
		o.warn(codeProgress, "progress could not be written; the run continued without it")
	}
	return o
}

// newSequence starts a read sequence: one delay, one deadline (S21, S22).
func (s *session) newSequence(requests int) *recovery.Sequence {
	clock := s.tool.Clock
	return recovery.New(recovery.Options{
		MaxRequests: requests,
		Waiting:     s.report.Wait,
		Clock:       recovery.Clock{Now: clock.Now, Elapsed: clock.Elapsed, Sleep: s.sleep},
	})
}

// sleep waits as long as the sequence asks, and then, for less than a second more, until the whole
// second at which the journal's restriction ends.
func (s *session) sleep(ctx context.Context, d time.Duration) error {
	if err := s.tool.Clock.Sleep(ctx, d); err != nil {
		return err
	}
	if s.scribe.j == nil {
		return nil
	}
	now := s.tool.Clock.Now()
	status := s.scribe.j.Record().Status(now, "")
	if status.State != journal.Waiting {
		return nil
	}
	if rest := time.Unix(*status.NotBeforeUTC, 0).Sub(now); rest <= time.Second {
		return s.tool.Clock.Sleep(ctx, rest)
	}
	return nil // Begin will refuse
}

// noted takes over what a sequence has to say.
func (s *session) noted(seq *recovery.Sequence) {
	if !seq.Used() && seq.Stopped() == nil {
		return
	}
	for _, text := range seq.Warnings() {
		s.out.warn("read-recovery", text)
	}
}

// read makes one read of a sequence. What comes back beside an error that is only about the record
// of the exchange is dropped with it.
func read[T any](ctx context.Context, seq *recovery.Sequence, do func(context.Context, search.Bounds) (T, string, error)) (T, error) {
	return recovery.Read(ctx, seq, recovery.ReadOptions{CodeOf: func(err error) string { return explain(err).code }},
		func(ctx context.Context, a recovery.Attempt) (T, recovery.Outcome, error) {
			value, id, err := do(ctx, search.Bounds{Timeout: a.Timeout})
			return value, toRecovery(id, err), err
		})
}

// view is the source as the service shows it; absent when there is none.
type view struct {
	absent     bool
	definition map[string]any
	etag       string
}

// getSource reads the source. 404 is absence, unless the exchange could not be recorded (S51). seq
// nil means a first read: a 429 fails at once (S38).
func (s *session) getSource(ctx context.Context, seq *recovery.Sequence) (*view, error) {
	s.report.Enter(progress.Source)
	get := func(ctx context.Context, bounds search.Bounds) (*view, string, error) {
		got, err := s.client.Get(ctx, search.KnowledgeSources, s.name, bounds)
		if e, ok := errors.AsType[*search.Error](err); ok && e.Status == http.StatusNotFound && e.Persistence == nil {
			return &view{absent: true}, e.RequestID, nil
		}
		if err != nil {
			return nil, "", err
		}
		tag, err := got.ETags.Value()
		if err != nil {
			return nil, got.RequestID, err
		}
		return &view{definition: got.Definition, etag: tag}, got.RequestID, nil
	}
	if seq == nil {
		got, _, err := get(ctx, search.Bounds{})
		return got, err
	}
	defer s.noted(seq)
	return read(ctx, seq, get)
}

// definitionBytes is the body of the PUT: the canonical form, so that it is the same on every
// machine.
func definitionBytes(p *plan.Plan) ([]byte, error) {
	data, err := json.Marshal(p.Source.Definition)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(json.RawMessage(data))
}
