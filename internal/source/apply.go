package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// Places are the private folders of an apply. A continuation takes its journal from the plan; both
// may then be empty.
type Places struct{ Journal, Receipts string }

// Apply carries out an approved envelope. Everything that can be checked here is checked before a
// token is asked for.
func (t *Tool) Apply(ctx context.Context, envelope []byte, places Places) *Outcome {
	s := t.begin(ctx, "apply")
	e, err := plan.Parse(envelope)
	if err != nil {
		s.failed(err)
		return s.finish("", false)
	}
	s.out.Fingerprint = e.Fingerprint()
	if e.Continue != nil {
		return s.applyContinuation(ctx, e, places)
	}
	if !e.Approval.Confirmed {
		s.failed(fail(plan.CodeApproval, "the plan is not approved"))
		return s.finish("", false)
	}
	a := &creation{batch: s.newBatch(e.File, e.Fingerprint()), envelope: e, places: places}
	a.run(ctx)
	return s.finish(StatusCompleted, a.wrote())
}

// creation is the run of a plan that creates or updates the source.
type creation struct {
	*batch
	envelope *plan.Envelope
	places   Places
	receipts *durable.Dir
	// ack is set once the service acknowledged the PUT; unknown says that a PUT was sent without a
	// known outcome.
	ack     *record.SourceAck
	unknown bool
	updated bool
	ackID   string // a sentence with the request id of the acknowledgement
}

// wrote says that the outcome cannot be "nothing was written": a created source makes a failure
// partial, always (S89).
func (a *creation) wrote() bool { return a.ack != nil || a.unknown || a.updated || a.touched() }

func (a *creation) run(ctx context.Context) {
	if err := a.prepare(ctx); err != nil {
		a.failed(err)
		return
	}
	defer a.close()
	if err := a.open(ctx); err != nil {
		a.failed(err)
		return
	}
	if err := a.reconcile(ctx); err != nil {
		a.failed(err)
	} else {
		a.batch.run(ctx)
	}
	a.describe(nil)
	a.resources()
	if a.first == nil && !a.complete() {
		a.failed(fail(codeIncomplete, "not every file is confirmed"))
	}
}

// resources puts the source itself in front of its files.
func (a *creation) resources() {
	o, name := a.out, a.plan.Source.Name
	r := &o.ResourcesRemaining
	switch {
	case a.ack != nil && a.plan.Action == plan.ActionCreate:
		r.Created = append([]string{name}, r.Created...)
		o.WritesPerformed = append([]Write{{Action: "create-source", Name: name}}, o.WritesPerformed...)
	case a.ack != nil || a.updated:
		r.Updated = append(r.Updated, name)
		o.WritesPerformed = append([]Write{{Action: "update-source", Name: name}}, o.WritesPerformed...)
	case a.unknown:
		w := Write{Action: a.plan.Action + "-source-unverified", Name: name}
		r.Unverified = append([]Write{w}, r.Unverified...)
		o.WritesPerformed = append([]Write{w}, o.WritesPerformed...)
	}
}

// prepare checks all that needs no service: the address, the local files, the two folders (S93,
// S99).
func (a *creation) prepare(ctx context.Context) error {
	if err := a.tool.allowed(a.plan.Endpoint); err != nil {
		return err
	}
	root, err := corpus.OpenRoot(a.plan.Files.LocalRoot)
	if err != nil {
		return err
	}
	a.root = root
	for _, f := range a.files {
		if err := root.Check(ctx, f.Local()); err != nil {
			return err
		}
		f.eligible = a.plan.Action == plan.ActionCreate
	}
	if a.plan.Action == plan.ActionUpdate {
		a.inventoried = a.plan.InventoryDigest
	}
	if err := a.places.check(); err != nil {
		return err
	}
	if err := emptyFolder(a.places.Journal, a.tool.disk()); err != nil {
		return err
	}
	a.receipts, err = durable.Make(a.places.Receipts, a.tool.disk())
	return err
}

func (p Places) check() error {
	switch {
	case p.Receipts == "":
		return fail(codeReceiptRequired, "a creation needs --receipts, a private folder for the receipt of what was created")
	case p.Journal == "":
		return fail(codeJournalRequired, "a creation needs --journal, an empty private folder")
	}
	journal, receipts := filepath.Clean(p.Journal)+string(filepath.Separator), filepath.Clean(p.Receipts)+string(filepath.Separator)
	if strings.HasPrefix(journal, receipts) || strings.HasPrefix(receipts, journal) || sameFolder(p.Journal, p.Receipts) {
		return fail(codeDirConflict, "--journal and --receipts must be different folders, neither inside the other")
	}
	return nil
}

func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// emptyFolder refuses a journal folder with something in it, before a token is asked for; the
// journal itself asks again under its lock.
func emptyFolder(path string, opt durable.Options) error {
	d, err := durable.Make(path, opt)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // only read
	names, _, err := d.List(record.NewLayout().MaxFiles())
	if err == nil && len(names) > 0 {
		return fail("file-upload-"+string(journal.CodeExists), "the folder of a new journal must be empty")
	}
	return err
}

// open asks for the token and writes the founding entry. From here on every request is journaled.
func (a *creation) open(ctx context.Context) error {
	service, _, err := plan.Address(a.plan.Endpoint, a.plan.APIVersion, a.plan.Source.Name)
	if err != nil {
		return err
	}
	if err := a.connect(service, a.plan.Source.Name); err != nil {
		return err
	}
	if err := a.client.Authenticate(ctx); err != nil {
		return err
	}
	a.scribe.j, err = journal.Create(a.places.Journal, record.NewLayout(), record.Run{
		Document: a.envelope.Document, Context: contextOf(a.client.Identity(), a.tool.Emulator), BackoffVersion: record.BackoffVersion,
	}, journal.Options{Around: a.tool.Disk})
	return err
}

func (a *creation) close() {
	if a.receipts != nil {
		_ = a.receipts.Close()
	}
	if a.scribe.j != nil {
		_ = a.scribe.j.Close()
	}
}
