package source

import (
	"cmp"
	"context"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/recovery"
)

// batch is the files of one plan in one run, whether it creates the source, continues, or only
// looks.
type batch struct {
	*session
	plan *plan.Plan
	// of the plan that created the source: it makes the boundary of every upload (S74)
	fingerprint string
	ackDigest   string // of the creation's acknowledgement
	etag        string // of the source, as this run retains it
	root        corpus.Root
	files       []*item

	// inventoried is the digest that the first inventory must have, "" for any (S72).
	inventoried string

	retried bool // the one repetition of this run is used up (S80)
	sent    bool // something was sent since the last inventory
	stopped bool // no further upload
	listed  bool // the last inventory succeeded
	bytes   struct{ done, total int64 }
}

// item is one file of a batch.
type item struct {
	plan.File
	number   int // in the plan, the first is 0
	eligible bool
	// unsent says that an attempt of this run was or may have been announced, and that it is
	// certain that nothing left this machine.
	unsent bool
	state  record.State
}

// due says that the file is to be sent: it was never attempted, and the server does not have it.
func (f *item) due() bool {
	return f.eligible && f.state.Upload == record.NotAttempted && f.state.Verification == ""
}

func (s *session) newBatch(p *plan.Plan, fingerprint string) *batch {
	b := &batch{session: s, plan: p, fingerprint: fingerprint}
	for i, f := range p.Files.Records {
		b.files = append(b.files, &item{File: f, number: i, state: record.State{Upload: record.NotAttempted}})
	}
	return b
}

// restore takes the states over from the journal.
func (b *batch) restore() {
	for i, state := range record.States(b.scribe.j.Record(), len(b.files)) {
		b.files[i].state = state
	}
}

// run sends what is due, strictly one after the other in the order of the plan, between two
// inventories (S71, S72, S79).
func (b *batch) run(ctx context.Context) {
	for _, f := range b.files {
		if f.due() {
			b.bytes.total += f.Size
		}
	}
	if err := b.look(ctx, b.newSequence(maxRequests), progress.Inventory); err != nil {
		b.failed(err)
		return
	}
	for _, f := range b.files {
		if f.due() && !b.send(ctx, f) {
			break
		}
	}
	if b.stopped || !b.sent || b.allRejected() {
		return
	}
	if err := b.look(ctx, b.newSequence(maxRequests), progress.Verify); err != nil {
		b.failed(err)
	}
}

// allRejected says that no inventory could show anything new: every file was rejected and none is
// proved (S79).
func (b *batch) allRejected() bool {
	for _, f := range b.files {
		if f.state.Upload != record.Rejected || f.state.Verification == record.Confirmed {
			return false
		}
	}
	return true
}

// stop ends the uploads of this run.
func (b *batch) stop(err error) bool {
	b.stopped = true
	b.failed(err)
	return false
}

// look lists the files on the server and compares them with the plan.
func (b *batch) look(ctx context.Context, seq *recovery.Sequence, stage progress.Stage) error {
	b.listed = false
	files, err := b.inventory(ctx, seq, stage)
	if err != nil {
		return err
	}
	b.sent = false
	if b.inventoried != "" && inventoryDigest(files) != b.inventoried {
		return fail(codeInventoryDrift, "the files on the service differ from the approved ones")
	}
	if err := b.observe(files, codeRecordConflict); err != nil {
		return err
	}
	b.listed = true
	b.tell()
	return nil
}

// observe takes over what an inventory shows. A name that the plan does not have, two records of
// one name, and a record that is not the approved file are conflicts; an error that the service
// reports makes a file failed (S66, S67).
func (b *batch) observe(files []wire.File, twice string) error {
	byName := map[string][]wire.File{}
	for _, on := range files {
		byName[on.Name] = append(byName[on.Name], on)
	}
	known := 0
	var first error
	for _, f := range b.files {
		on := byName[f.Path]
		known += len(on)
		err := b.compare(f, on)
		if len(on) > 1 {
			err = fail(twice, "the service lists "+quote(f.Path)+" more than once")
		}
		if err != nil {
			f.disproved()
			first = cmp.Or(first, err)
		}
	}
	if first == nil && known < len(files) {
		return fail(codeServerConflict, "the service lists a file that is not in the plan")
	}
	return first
}

// disproved takes a confirmation away that the last list contradicts: what was proved before does
// not hold any more.
func (f *item) disproved() {
	if f.state.Verification != record.Confirmed {
		return
	}
	switch f.state.Upload {
	case record.Accepted:
		f.state.Verification = record.Pending
	case record.Rejected:
		f.state.Verification = record.Failed
	default:
		f.state.Verification = ""
	}
}

func (b *batch) compare(f *item, on []wire.File) error {
	if len(on) == 0 {
		f.disproved()
		if f.state.Upload == record.Accepted {
			f.state.Verification = record.Pending
		}
		return nil
	}
	got := on[0]
	conflict := fail(codeRecordConflict, "the service's record of "+quote(f.Path)+" does not match the approved file")
	switch {
	case got.Failed:
		f.state.Verification = record.Failed
		return nil
	case !matches(b.plan, f.File, got):
		return conflict
	case f.state.FileID != "" && got.ID != "" && f.state.FileID != got.ID:
		return conflict // whatever form it has
	case !wire.SafeID(got.ID):
		if f.state.Upload == record.NotAttempted {
			return conflict
		}
		return nil // nothing is proved without an id
	}
	f.state.FileID, f.state.Verification = got.ID, record.Confirmed
	if f.state.Upload == record.NotAttempted {
		f.state.Upload = record.Reused
	}
	return nil
}

// tell reports how many files are where.
func (b *batch) tell() {
	c := b.counts()
	b.report.Count(c.Total-c.Confirmed, map[string]int{
		"confirmed": c.Confirmed, "accepted": c.Accepted, "failed": c.Failed, "unverified": c.Unverified,
	})
	b.report.Bytes(b.bytes.done, b.bytes.total)
}
