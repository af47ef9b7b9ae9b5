package source

import (
	"context"
	"errors"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
)

// Deletion names one source and what it must still be for it to be deleted. Only NewDeletion makes
// one that Delete accepts: nothing that was merely found on a service can be deleted.
type Deletion struct {
	endpoint, apiVersion, name string
	fingerprint                string // of the plan that created the source
	definition                 string // digest of what matters of it (S52)
	etag                       string // from the acknowledgement
}

// NewDeletion takes the approved envelope of a creation and the original acknowledgement of it,
// from the journal or a verified receipt; nil is none. Nothing is sent. Without both, or when they
// do not belong together, ownership is unproven; without one clear ETag in the acknowledgement the
// created version is, and no later read can supply it. See RefusedBy for the outcome of the error.
func NewDeletion(envelope []byte, ack *record.SourceAck) (Deletion, error) {
	e, err := plan.Parse(envelope)
	if err != nil {
		return Deletion{}, err
	}
	unproven := func(why string) (Deletion, error) { return Deletion{}, fail(codeOwnership, why) }
	switch p := e.File; {
	case !e.Approval.Confirmed:
		return Deletion{}, fail(plan.CodeApproval, "the plan is not approved")
	case p == nil || p.Action != plan.ActionCreate:
		return unproven("the plan is not for a creation")
	case ack == nil:
		return unproven("the creation was not acknowledged")
	case ack.OriginalPlanDigest != e.Digest() || ack.SourceURL != p.Source.URL:
		return unproven("the acknowledgement is not for this plan and source")
	case ack.Acknowledgement.Status != http.StatusOK && ack.Acknowledgement.Status != http.StatusCreated, !record.SafeID(ack.Acknowledgement.RequestID):
		return unproven("the response to the creation is no acknowledgement, or has no safe request id")
	}
	tag, err := ack.ETag()
	if err != nil {
		return Deletion{}, fail(codeCreationVersion, "the creation was acknowledged without a single ETag")
	}
	return Deletion{
		endpoint: e.File.Endpoint, apiVersion: e.File.APIVersion, name: e.File.Source.Name,
		fingerprint: e.Fingerprint(), definition: definitionDigest(e.File.Source.Definition), etag: tag,
	}, nil
}

// Delete removes the source if it still is what its run created, and looks whether it is gone
// (S59). At most one DELETE is sent and at most one read after it; nothing is waited for, whatever
// was answered (S38). StatusSkipped says that it was absent already. Whatever else must hold before
// a source goes, such as that nobody uses it, is for the caller to have checked.
func (t *Tool) Delete(ctx context.Context, d Deletion) *Outcome {
	r := &removal{session: t.begin(ctx, "delete"), want: d}
	r.out.Fingerprint = d.fingerprint
	status, err := r.run(ctx)
	if err != nil {
		r.failed(err)
	}
	r.resources()
	out := r.finish(status, r.acknowledged || r.unknown)
	if out.Code == codeDrift {
		// a new plan would not delete it either
		out.Next = "the source is not what the run created and was not deleted; check it on the service"
	}
	return out
}

// removal is one deletion on its way.
type removal struct {
	*session
	want Deletion
	// acknowledged says that the service confirmed the DELETE or that a readback completed one in
	// doubt; unknown, that its outcome is unknown; absent, that a read after it found nothing;
	// stands, that the source was seen as created and plainly not deleted.
	acknowledged, unknown, absent, stands bool
}

func (r *removal) run(ctx context.Context) (string, error) {
	if err := r.open(ctx); err != nil {
		return "", err
	}
	now, err := r.getSource(ctx, nil)
	switch {
	case err != nil:
		return "", err
	case now.absent:
		return StatusSkipped, nil
	case definitionDigest(now.definition) != r.want.definition || !sameTag(now.etag, r.want.etag):
		return "", fail(codeDrift, "the knowledge source is no longer what the run created; it was not deleted")
	}
	return r.remove(ctx, now.etag)
}

// open makes the client and asks for the token; no request is sent for a Deletion that nothing
// proves.
func (r *removal) open(ctx context.Context) error {
	if r.want == (Deletion{}) {
		return fail(codeOwnership, "the deletion was not made from an approved plan and an acknowledged creation")
	}
	if err := r.tool.allowed(r.want.endpoint); err != nil {
		return err
	}
	service, _, err := plan.Address(r.want.endpoint, r.want.apiVersion, r.want.name)
	if err != nil {
		return err
	}
	if err := r.connect(service, r.want.name); err != nil {
		return err
	}
	return r.client.Authenticate(ctx)
}

// remove sends the one DELETE. etag is the service's own spelling of the one that was acknowledged.
func (r *removal) remove(ctx context.Context, etag string) (string, error) {
	_, err := r.client.Delete(ctx, search.KnowledgeSources, r.name, search.IfMatch(etag), search.Bounds{})
	if err == nil {
		r.acknowledged = true
		if r.absent = r.gone(ctx); !r.absent {
			return "", fail(codeAbsence, "the deletion was acknowledged, but a read after it did not confirm that the knowledge source is gone")
		}
		return StatusCompleted, nil
	}
	s, ok := errors.AsType[*search.Error](err)
	switch {
	case !ok || !s.Sent:
		r.stands = true
		return "", err
	case s.Persistence != nil: // nothing may be sent after it, so nothing can be found out (S104)
		r.unknown = true
		return "", err
	case s.Status == http.StatusNotFound:
		return StatusSkipped, nil
	case s.Status == http.StatusPreconditionFailed:
		return "", fail(codeDrift, "the knowledge source changed just before the deletion, which the service rejected: "+s.Error())
	case !s.Ambiguous:
		r.stands = true
		return "", err
	}
	return r.inDoubt(ctx, s)
}

// inDoubt looks once, at once, after a DELETE whose outcome is unknown.
func (r *removal) inDoubt(ctx context.Context, original *search.Error) (string, error) {
	if r.absent = r.gone(ctx); r.absent {
		r.acknowledged = true
		r.out.warn(original.Code, "the deletion was not acknowledged ("+original.Error()+"); a read after it shows that the knowledge source is gone")
		return StatusCompleted, nil
	}
	r.unknown = true
	return "", &failure{
		code: codeDeleteAmbiguous, message: "the deletion was sent and its outcome is unknown: " + original.Error(),
		status: original.Status, requestID: original.RequestID, ambiguous: true,
	}
}

// gone reads once without recovery (S38). Only a 404 shows absence; a read that failed becomes a
// warning.
func (r *removal) gone(ctx context.Context) bool {
	now, err := r.getSource(ctx, nil)
	if err != nil {
		f := explain(err)
		r.out.warn(f.code, f.message)
		return false
	}
	return now.absent
}

// resources says what was written and what is left.
func (r *removal) resources() {
	o, doubt := r.out, Write{Action: "delete-source-unverified", Name: r.name}
	switch {
	case r.acknowledged:
		o.WritesPerformed = append(o.WritesPerformed, Write{Action: "delete-source", Name: r.name})
	case r.unknown:
		o.WritesPerformed = append(o.WritesPerformed, doubt)
	case r.stands:
		o.ResourcesRemaining.Created = append(o.ResourcesRemaining.Created, r.name)
	}
	if (r.acknowledged || r.unknown) && !r.absent {
		o.ResourcesRemaining.Unverified = append(o.ResourcesRemaining.Unverified, doubt)
	}
}
