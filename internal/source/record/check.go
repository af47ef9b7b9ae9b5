package record

import (
	"errors"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
)

// check holds the entries of a journal against each other: every digest is that of the thing which
// it names (section 14).
func (b *book) check(r *journal.Record) error {
	run, ok := r.Entry(RunName)
	if !ok {
		return nil // reported by the journal itself
	}
	o, err := b.opened(run.Payload)
	if err != nil {
		return err
	}
	c := checker{r: r, o: o, b: b}
	if ack, ok := r.Entry(SourceAckName); ok {
		if err := c.sourceAck(ack); err != nil {
			return at(ack, err)
		}
	}
	for _, t := range []struct {
		name  string
		check func(journal.Entry) error
	}{{TypeAttempt, c.attempt}, {TypeResult, c.result}, {TypeRetryAttempt, c.retry}, {TypeRetryResult, c.result}} {
		for _, e := range r.Entries(t.name) {
			if e.Number >= len(o.Plan().Files.Records) {
				return at(e, fault("", "is for a file that is not in the plan"))
			}
			if err := t.check(e); err != nil {
				return at(e, err)
			}
		}
	}
	return c.restrictions()
}

// at names the entry of a fault.
func at(e journal.Entry, err error) error {
	if f, ok := errors.AsType[*journal.Error](err); ok && f.Entry == "" {
		f.Entry = e.Name
	}
	return err
}

type checker struct {
	r *journal.Record
	o *Opened
	b *book
}

func (c *checker) sourceAck(e journal.Entry) error {
	ack, err := decode[SourceAck](c.b, e)
	if err != nil {
		return err
	}
	p := c.o.Plan()
	switch a := ack.Acknowledgement; {
	case ack.OriginalPlanDigest != c.o.Envelope.Digest():
		return fault("original_plan_digest", "is not that of the plan")
	case ack.SourceURL != p.Source.URL:
		return fault("source_url", "is not that of the plan")
	case a.Status != 200 && a.Status != 201:
		return fault("acknowledgement.status", "must be 200 or 201")
	case !SafeID(a.RequestID):
		return fault("acknowledgement.request_id", "is not a safe identifier")
	case a.ETagEvidence.Headers == nil:
		return fault("acknowledgement.etag_evidence.headers", "must be a list")
	}
	_, err = ack.ETag()
	return err
}

// ETag is the one that all evidence of the acknowledgement agrees on (S53, S118).
func (a SourceAck) ETag() (string, error) {
	tag, err := a.Acknowledgement.ETagEvidence.Value()
	if err != nil || tag == "" {
		return "", fault("acknowledgement.etag_evidence", "does not agree on one ETag")
	}
	return tag, nil
}

func (c *checker) attempt(e journal.Entry) error {
	a, err := decode[Attempt](c.b, e)
	if err != nil {
		return err
	}
	return c.bound(e.Number, *a)
}

// bound compares the digests that an attempt names with the things themselves.
func (c *checker) bound(number int, a Attempt) error {
	ack, _ := c.r.Entry(SourceAckName)
	switch {
	case a.OriginalPlanDigest != c.o.Envelope.Digest():
		return fault("original_plan_digest", "is not that of the plan")
	case a.RecordDigest != c.b.recordDigest(c.o.Plan(), number):
		return fault("record_digest", "is not that of the file")
	case a.CreationAckDigest != ack.Digest:
		return fault("creation_ack_digest", "is not that of the acknowledgement")
	}
	return nil
}

func (b *book) recordDigest(p *plan.Plan, number int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := p.Files.Records[number]
	if b.bodies[f.Path] == "" {
		b.bodies[f.Path] = plan.Digest(f)
	}
	return b.bodies[f.Path]
}

func (c *checker) retry(e journal.Entry) error {
	a, err := decode[RetryAttempt](c.b, e)
	if err != nil {
		return err
	}
	first, ok := c.r.Entry(journal.Numbered(TypeResult, e.Number))
	if !ok || first.Digest != a.RejectedResultDigest {
		return fault("rejected_result_digest", "is not that of the first result")
	}
	if result, err := decode[Result](c.b, first); err != nil || result.Status == nil || *result.Status != 429 {
		return fault("rejected_result_digest", "names a result that was not throttled")
	}
	return c.bound(e.Number, Attempt{a.OriginalPlanDigest, a.RecordDigest, a.CreationAckDigest})
}

func (c *checker) result(e journal.Entry) error {
	result, err := decode[Result](c.b, e)
	if err != nil {
		return err
	}
	if p := result.FileProof; p != nil && p.RecordDigest != c.b.recordDigest(c.o.Plan(), e.Number) {
		return fault("file_proof.record_digest", "is not that of the file")
	}
	if result.Nonce == nil && c.o.Run.BackoffVersion != "" {
		return fault("nonce", "is missing")
	}
	return nil
}

// restrictions checks that a restriction names an attempt exactly when it is about an upload to the
// list address. An operator's statement about a POST need not: the attempt may have its end, and
// what is stated is that of the wait.
func (c *checker) restrictions() error {
	upload := strictjson.DigestBytes([]byte(c.o.UploadURL))
	for _, e := range c.r.Restrictions() {
		isUpload := e.Method == "POST" && e.URLDigest == upload
		where := journal.Entry{Name: e.Name}
		if e.Attempt == "" && e.Method == "POST" && e.Review == nil || e.Attempt != "" && !isUpload {
			return at(where, fault("attempt", "does not belong to this request"))
		}
		if e.Attempt != "" && !slices.Contains([]string{TypeAttempt, TypeRetryAttempt}, c.typeOf(e.Attempt)) {
			return at(where, fault("attempt", "is not an upload"))
		}
	}
	return nil
}

func (c *checker) typeOf(name string) string {
	e, _ := c.r.Entry(name)
	return e.Type
}
