package source

import (
	"context"
	"errors"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// reconcile makes the source what the plan says: read, write under a condition, keep the
// acknowledgement, read back (S50-S58).
func (a *creation) reconcile(ctx context.Context) error {
	now, err := a.getSource(ctx, nil)
	if err != nil {
		return err
	}
	same := !now.absent && sameDefinition(now.definition, a.plan.Source.Definition)
	switch {
	case a.plan.Action == plan.ActionCreate && same:
		return fail(codeReusedUpload, "the knowledge source appeared since the plan was made; an existing source accepts no uploads")
	case a.plan.Action == plan.ActionCreate && !now.absent:
		return fail(codeDrift, "a knowledge source of this name appeared since the plan was made, with another definition")
	case a.plan.Action == plan.ActionCreate:
		return a.put(ctx, search.IfAbsent())
	case now.absent || now.etag != *a.plan.Source.ETag:
		return fail(codeDrift, "the knowledge source changed since the plan was made")
	case same:
		a.etag = now.etag
		return nil // equal definition, no write
	}
	return a.put(ctx, search.IfMatch(*a.plan.Source.ETag))
}

func (a *creation) put(ctx context.Context, condition search.Condition) error {
	body, err := definitionBytes(a.plan)
	if err != nil {
		return err
	}
	a.scribe.next = intent{conclude: a.acknowledged}
	_, err = a.client.Put(ctx, search.KnowledgeSources, a.name, body, condition, search.Bounds{})
	if err == nil || a.ack != nil {
		return a.confirm(ctx, err)
	}
	s, ok := errors.AsType[*search.Error](err)
	if !ok || !s.Ambiguous || !s.Sent {
		return err // S57: plainly refused, or never sent
	}
	a.unknown = true
	return a.inDoubt(ctx, s)
}

// acknowledged keeps the answer to the PUT: the receipt for a later cleanup first, then the
// journal's own (S54). Both are tried even when one fails, so that an acknowledgement is not lost
// (S105).
func (a *creation) acknowledged(o search.Outcome, nonce string, _ *journal.Restriction) error {
	if o.Status != http.StatusOK && o.Status != http.StatusCreated {
		return nil
	}
	headers := o.ETags.Headers
	if headers == nil {
		headers = []string{}
	}
	a.ack = &record.SourceAck{
		OriginalPlanDigest: a.fingerprint, SourceURL: a.plan.Source.URL, Nonce: &nonce,
		Acknowledgement: record.Ack{
			Status: o.Status, RequestID: o.RequestID, ETagEvidence: record.Evidence{Body: o.ETags.Body, Headers: headers},
		},
	}
	err := a.receipt()
	if a.plan.Action == plan.ActionUpdate || !record.SafeID(o.RequestID) {
		return err // an update gives no ownership, and an unsafe request id no provenance
	}
	if tag, bad := a.ack.ETag(); bad != nil || tag == "" {
		return err
	}
	e, failed := a.scribe.j.Append(record.SourceAckName, a.ack)
	a.ackDigest = e.Digest
	return errors.Join(err, failed)
}

// receipt is what a cleanup will have to show: that this run created the source, and as what.
func (a *creation) receipt() error {
	payload := map[string]any{
		"original_plan_digest": a.fingerprint, "owner": a.plan.Owner, "source_url": a.plan.Source.URL, "action": a.plan.Action,
		"definition_digest": plan.Digest(a.plan.Source.Definition), "acknowledgement": a.ack.Acknowledgement,
	}
	data, err := strictjson.Canonical(map[string]any{
		"schema_version": "1.0", "kind": "source-" + a.plan.Action + "-receipt", "payload": payload, "integrity": plan.Digest(payload),
	})
	if err != nil {
		return err
	}
	return a.receipts.Publish("source-"+a.plan.Action+"-"+*a.ack.Nonce+".json", append(data, '\n'))
}

// confirm reads the source back after an acknowledged write. putErr is what is wrong with the
// answer although it acknowledged.
func (a *creation) confirm(ctx context.Context, putErr error) error {
	if id := a.ack.Acknowledgement.RequestID; id != "" {
		a.ackID = "the write was acknowledged with request id " + id
	}
	if putErr != nil {
		return a.afterWrite(putErr)
	}
	now, err := a.getSource(ctx, a.newSequence(0))
	if err != nil {
		return a.afterWrite(err)
	}
	tag, bad := a.ack.ETag()
	switch {
	case now.absent || !sameDefinition(now.definition, a.plan.Source.Definition):
		return a.afterWrite(fail(codeReadbackMismatch, "the knowledge source differs from what was written"))
	case bad != nil || a.ackDigest == "" && a.plan.Action == plan.ActionCreate:
		return a.afterWrite(fail(codeProvenance, "the creation was acknowledged without a safe request id or a single ETag; no upload can be bound to it"))
	case now.etag != "" && !sameTag(now.etag, tag):
		return a.afterWrite(fail(codeReadbackMismatch, "the knowledge source changed right after it was written"))
	}
	a.etag = now.etag
	return nil
}

// afterWrite adds the acknowledgement's request id to what is reported (S54).
func (a *creation) afterWrite(err error) error {
	if a.ackID != "" {
		a.out.warn("write-acknowledged", a.ackID)
	}
	return err
}

func sameTag(a, b string) bool {
	_, err := (search.ETagEvidence{Headers: []string{a, b}}).Value()
	return err == nil
}

// inDoubt looks once after a PUT whose outcome is unknown. On a create it always ends as the
// original failure: what stands there is an observation, never ours (S55). On an update a matching
// source completes it (S56).
func (a *creation) inDoubt(ctx context.Context, original *search.Error) error {
	seq := a.newSequence(0)
	if original.Status == http.StatusTooManyRequests {
		if original.Permanent() {
			return original
		}
		// wait first, never look at once (S34)
		if err := seq.Wait(ctx, toRecovery("", original)); err != nil {
			return a.both(original, err)
		}
	}
	if original.Persistence != nil {
		return original
	}
	now, err := a.getSource(ctx, seq)
	if err != nil {
		return a.both(original, err)
	}
	if now.absent || !sameDefinition(now.definition, a.plan.Source.Definition) {
		return original
	}
	if a.plan.Action == plan.ActionUpdate {
		a.unknown, a.updated, a.etag = false, true, now.etag
		return nil
	}
	a.out.ResourcesRemaining.Reused = append(a.out.ResourcesRemaining.Reused, a.name)
	return original
}

// both reports the original failure and warns of the later one (S29, S90).
func (a *creation) both(original, later error) error {
	f := explain(later)
	a.out.warn(f.code, f.message)
	return original
}
