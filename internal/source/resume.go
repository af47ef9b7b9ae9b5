package source

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// continuation is a run that starts from the journal of an earlier one.
type continuation struct {
	*batch
	opened *record.Opened
	ack    record.SourceAck
	before []record.State
	// localRoot stands in for that of the plan when it is set: the journal came from another
	// machine (S153).
	localRoot string
}

// reopen takes the journal's lock, verifies everything in it, finishes what a killed run had
// received but not recorded, and takes the states over. Nothing is sent and no token is asked for
// (S118, S119).
func (s *session) reopen(dir string) (*continuation, error) {
	j, err := journal.Open(dir, record.NewLayout(), journal.Options{Around: s.tool.Disk})
	if err != nil {
		return nil, err
	}
	s.scribe.j = j
	for _, text := range j.Record().Warnings() {
		s.out.warn("journal", text)
	}
	if _, err := record.Complete(j); err != nil {
		return nil, err
	}
	c := &continuation{}
	if c.opened, err = record.Open(j.Record()); err != nil {
		return nil, err
	}
	p := c.opened.Plan()
	c.batch = s.newBatch(p, c.opened.Envelope.Digest())
	c.restore()
	for _, f := range c.files {
		c.before = append(c.before, f.state)
	}
	ack, _ := j.Record().Entry(record.SourceAckName) // required by the layout
	if err := ack.Decode(&c.ack); err != nil {
		return nil, err
	}
	c.ackDigest = ack.Digest
	c.etag, err = c.ack.ETag()
	return c, err
}

// admit is everything that must be right before a token is asked for: the address, the restriction
// (S106, S107), and the local files that are still to be sent (S122).
func (c *continuation) admit(ctx context.Context) error {
	if err := c.tool.allowed(c.plan.Endpoint); err != nil {
		return err
	}
	if err := c.clear(); err != nil {
		return err
	}
	root, err := corpus.OpenRoot(cmp.Or(c.localRoot, c.plan.Files.LocalRoot))
	if err != nil {
		return err
	}
	c.root = root
	for _, f := range c.files {
		switch err := error(nil); {
		case f.due():
			if err = root.Check(ctx, f.Local()); err != nil {
				return err
			}
		case f.state.Verification == record.Confirmed:
			if err = root.Stat(f.Local()); err != nil {
				c.out.warn(corpus.CodeDrift, "a file that was already confirmed has changed: "+quote(f.Path))
			}
		}
	}
	return nil
}

// meet asks for the token, compares the account and the source with what the run retained (S119).
func (c *continuation) meet(ctx context.Context) error {
	service, _, err := plan.Address(c.plan.Endpoint, c.plan.APIVersion, c.plan.Source.Name)
	if err != nil {
		return err
	}
	if err := c.connect(service, c.plan.Source.Name); err != nil {
		return err
	}
	if err := c.client.Authenticate(ctx); err != nil {
		return err
	}
	if contextOf(c.client.Identity(), c.tool.Emulator) != c.opened.Run.Context {
		return fail(codeContextDrift, "the account is not the one that started the run")
	}
	now, err := c.getSource(ctx, c.newSequence(0))
	if err != nil {
		return err
	}
	if now.absent || !sameTag(now.etag, c.etag) || !sameDefinition(now.definition, c.plan.Source.Definition) {
		return fail(codeSourceDrift, "the knowledge source is no longer what the run created")
	}
	c.etag = now.etag
	return nil
}

// close describes what is known and gives the journal back.
func (c *continuation) close() {
	c.describe(c.before)
	r := &c.out.ResourcesRemaining
	r.Created = append([]string{c.plan.Source.Name}, r.Created...)
	_ = c.scribe.j.Close()
}

// unsettled says whether anything is unknown or unproved: then what is left is partial, not
// blocked.
func (c *continuation) unsettled() bool {
	n := c.counts()
	return n.Unverified > 0 || n.Pending > 0
}

// Resume plans the upload-only continuation of a journal: the files that were never attempted and
// are not on the server (S117-S120). The envelope is nil when there is nothing to run.
// localRoot says where the files are on this machine, "" where the original plan has them.
func (t *Tool) Resume(ctx context.Context, dir, localRoot string) ([]byte, *Outcome) {
	s := t.begin(ctx, "resume")
	c, err := s.reopen(dir)
	if err != nil {
		s.failed(err)
		s.abandon()
		return nil, s.finish("", false)
	}
	for _, f := range c.files {
		f.eligible = true
	}
	c.localRoot = localRoot
	envelope, status, err := c.planned(ctx, dir)
	if err != nil {
		s.failed(err)
	}
	c.close()
	return envelope, s.finish(status, s.first != nil && s.first.code == codeNothingEligible && c.unsettled())
}

// abandon gives back a journal that could not be taken over.
func (s *session) abandon() {
	if s.scribe.j != nil {
		_ = s.scribe.j.Close()
	}
}

func (c *continuation) planned(ctx context.Context, dir string) ([]byte, string, error) {
	if err := c.admit(ctx); err != nil {
		return nil, "", err
	}
	if err := c.meet(ctx); err != nil {
		return nil, "", err
	}
	if err := c.look(ctx, c.newSequence(maxRequests), progress.Inventory); err != nil {
		return nil, "", err
	}
	if c.complete() {
		return nil, StatusCompleted, nil
	}
	p := &plan.Continuation{
		Kind: plan.KindContinue, Journal: dir, Endpoint: c.plan.Endpoint, APIVersion: c.plan.APIVersion, Owner: c.plan.Owner,
		LocalRoot: c.localRoot, SourceName: c.plan.Source.Name, SourceURL: c.plan.Source.URL, OriginalPlanDigest: c.fingerprint,
		CreationAckDigest: c.ackDigest, JournalDigest: c.scribe.j.Record().Digest(),
	}
	for _, f := range c.files {
		if f.due() {
			p.Eligible = append(p.Eligible, plan.Named{Ordinal: f.number, Path: f.Path})
		}
	}
	if len(p.Eligible) == 0 {
		return nil, "", fail(codeNothingEligible, "every file was attempted; files that were rejected, or whose outcome is unknown, are never sent again")
	}
	c.out.Fingerprint = plan.Digest(p)
	envelope, err := plan.New(p)
	return envelope, StatusPlanned, err
}

// applyContinuation carries out an approved continuation.
func (s *session) applyContinuation(ctx context.Context, e *plan.Envelope, places Places) *Outcome {
	if !e.Approval.Confirmed {
		s.failed(fail(codeUploadApproval, "the continuation is not approved"))
		return s.finish("", false)
	}
	if places.Journal != "" && filepath.Clean(places.Journal) != e.Continue.Journal {
		s.failed(fail(codeUploadInput, "--journal differs from the folder in the plan; omit it"))
		return s.finish("", false)
	}
	c, err := s.reopen(e.Continue.Journal)
	if err != nil {
		s.failed(err)
		s.abandon()
		return s.finish("", false)
	}
	executing := false
	if err := c.execute(ctx, e.Continue, &executing); err != nil {
		s.failed(err)
	}
	if s.first == nil && !c.complete() {
		s.failed(fail(codeIncomplete, "not every file is confirmed"))
	}
	c.close()
	return s.finish(StatusCompleted, executing)
}

func (c *continuation) execute(ctx context.Context, p *plan.Continuation, executing *bool) error {
	if err := c.bind(p); err != nil {
		return err
	}
	c.localRoot = p.LocalRoot
	if err := c.admit(ctx); err != nil {
		return err
	}
	if err := c.meet(ctx); err != nil {
		return err
	}
	*executing = true // from here on a failure is partial: the source stands (S125)
	c.run(ctx)
	return nil
}

// bind holds the plan against the journal as it is now (S121).
func (c *continuation) bind(p *plan.Continuation) error {
	drift := func(what string) error { return fail(codePlanDrift, what+" has changed since the plan was made") }
	switch {
	case p.OriginalPlanDigest != c.fingerprint:
		return drift("the plan of the run")
	case p.CreationAckDigest != c.ackDigest:
		return drift("the acknowledgement")
	case p.Owner != c.plan.Owner || p.Endpoint != c.plan.Endpoint || p.APIVersion != c.plan.APIVersion || p.SourceName != c.plan.Source.Name || p.SourceURL != c.plan.Source.URL:
		return drift("the source or its owner")
	}
	for _, n := range p.Eligible {
		if n.Ordinal >= len(c.files) || c.files[n.Ordinal].Path != n.Path {
			return drift("the list of files")
		}
		f := c.files[n.Ordinal]
		if f.state.Upload != record.NotAttempted {
			return fail(codeReplay, quote(f.Path)+" was already attempted and is never sent again")
		}
		f.eligible = true
	}
	if p.JournalDigest != c.scribe.j.Record().Digest() {
		return drift("the journal")
	}
	return nil
}

// Verify looks at the service and says whether everything stands as the journal and the plan have
// it. It writes nothing there.
func (t *Tool) Verify(ctx context.Context, envelope []byte, dir string) *Outcome {
	s := t.begin(ctx, "verify")
	e, err := plan.Parse(envelope)
	if err != nil {
		s.failed(err)
		return s.finish("", false)
	}
	s.out.Fingerprint = e.Fingerprint()
	c, err := s.reopen(dir)
	if err != nil {
		s.failed(err)
		s.abandon()
		return s.finish("", false)
	}
	if err := c.verify(ctx, e); err != nil {
		s.failed(err)
	}
	c.close()
	return s.finish(StatusCompleted, s.first != nil && s.first.code == codeIncomplete && c.unsettled())
}

func (c *continuation) verify(ctx context.Context, e *plan.Envelope) error {
	digest := e.Digest()
	if e.Continue != nil {
		digest = e.Continue.OriginalPlanDigest
	}
	if digest != c.fingerprint {
		return fail(codePlanDrift, "the journal is of another plan")
	}
	if err := c.tool.allowed(c.plan.Endpoint); err != nil {
		return err
	}
	if err := c.clear(); err != nil {
		return err
	}
	if err := c.meet(ctx); err != nil {
		return err
	}
	if err := c.look(ctx, c.newSequence(maxRequests), progress.Verify); err != nil {
		return err
	}
	if !c.complete() {
		return fail(codeIncomplete, "not every file is confirmed")
	}
	return nil
}
