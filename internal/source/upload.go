package source

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/recovery"
)

// send makes the first attempt at a file and says whether the batch goes on.
func (b *batch) send(ctx context.Context, f *item) bool {
	if err := b.ready(ctx, f); err != nil {
		return b.stop(err)
	}
	attempt := journal.Numbered(record.TypeAttempt, f.number)
	if _, err := b.scribe.j.Append(attempt, b.attempt(f)); err != nil {
		// the record may be on the disk although writing it failed
		f.state.Upload, f.unsent = record.Unverified, true
		return b.stop(err)
	}
	answer, err := b.post(ctx, f, attempt, journal.Numbered(record.TypeResult, f.number))
	return b.judge(ctx, f, answer, err)
}

// ready makes sure, before an attempt is announced, that nothing stands against it: the token, the
// local file, the restriction, the room for one more restriction (S48, S70, S102).
func (b *batch) ready(ctx context.Context, f *item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.client.Authenticate(ctx); err != nil {
		return err
	}
	if err := b.root.Check(ctx, f.Local()); err != nil {
		return err
	}
	return b.clear()
}

// clear asks the journal whether a request may be sent, as it will ask itself.
func (b *batch) clear() error {
	r := b.scribe.j.Record()
	if err := b.scribe.j.Failed(); err != nil {
		return err
	}
	if len(r.Restrictions()) >= journal.MaxRestrictions {
		return fail(codeLimit, "the journal is full: no more restrictions can be recorded")
	}
	return r.Gate(b.tool.Clock.Now())
}

func (b *batch) attempt(f *item) record.Attempt {
	return record.Attempt{OriginalPlanDigest: b.fingerprint, RecordDigest: b.digest(f), CreationAckDigest: b.ackDigest}
}

// post sends one file, once, and records what came of it. Whatever happens, the attempt has a
// result afterwards unless the disk failed.
func (b *batch) post(ctx context.Context, f *item, attempt, result string) (*search.FileAnswer, error) {
	f.state = record.State{Upload: record.Unverified, Attempts: f.state.Attempts + 1}
	f.unsent = true
	opened, err := b.root.Open(f.Local())
	if err != nil {
		return nil, errors.Join(err, b.unsent(result, attempt))
	}
	defer opened.Close()
	content := &localContent{Reader: opened}
	stop := b.report.Send(f.number+1, len(b.files), f.state.Attempts)
	b.scribe.next = intent{attempt: attempt, conclude: b.conclude(f, result)}
	before := b.bytes.done
	if f.state.Attempts > 1 {
		before -= f.Size // counted at the first attempt
	}
	answer, err := b.client.UploadFile(ctx, b.name, wire.Upload{
		Name: f.Path, Metadata: b.plan.Markers(f.File), MediaType: f.MediaType, Fingerprint: b.fingerprint,
		Bytes: f.Size, SHA256: f.SHA256, Content: content,
		Progress: func(sent int64) { b.report.Bytes(before+sent, b.bytes.total) },
	}, search.Bounds{})
	stop()
	if s, ok := errors.AsType[*search.Error](err); err == nil || ok && s.Sent {
		f.unsent, b.sent = false, true
	}
	if content.failed != nil {
		err = errors.Join(corpus.Unreadable(f.Path, content.failed), err)
	}
	b.bytes.done = before + f.Size
	b.tell()
	if _, ok := b.scribe.j.Record().Entry(result); !ok && b.scribe.j.Failed() == nil {
		err = errors.Join(err, b.unsent(result, attempt))
	}
	return answer, err
}

// localContent remembers why a local file could not be read while it was being sent: to the request
// that is only content that is not what was announced.
type localContent struct {
	io.Reader
	failed error
}

// Read implements io.Reader.
func (s *localContent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// unsent gives an attempt whose request was never begun the result of a request without an answer:
// it stays unverified, and the journal usable.
func (b *batch) unsent(result, attempt string) error {
	b.scribe.next = intent{}
	if b.scribe.open != nil { // begun after all; its end failed and is latched
		return nil
	}
	url, err := b.client.Service().UploadURL(b.name)
	if err != nil {
		return err
	}
	x, err := b.scribe.j.Begin(b.tool.Clock.Now(), journal.Request{Method: http.MethodPost, URL: url, Attempt: attempt})
	if err != nil {
		return err
	}
	nonce := x.Nonce()
	if _, err := b.scribe.j.Append(result, record.Result{Upload: record.Unverified, Nonce: &nonce}); err != nil {
		return err
	}
	return x.Done()
}

// conclude records the outcome of an upload. What was learnt is kept in memory even when it cannot
// be kept on the disk (S105).
func (b *batch) conclude(f *item, name string) func(search.Outcome, string, *journal.Restriction) error {
	return func(o search.Outcome, nonce string, event *journal.Restriction) error {
		result := b.resultOf(f, o, nonce)
		if event != nil {
			result = record.Throttled(*event)
		}
		f.state.Apply(result)
		_, err := b.scribe.j.Append(name, result)
		return err
	}
}

func (b *batch) resultOf(f *item, o search.Outcome, nonce string) record.Result {
	r := record.Result{Nonce: &nonce}
	if o.Status >= 100 && o.Status <= 599 {
		r.Status = &o.Status
	}
	r.Upload = record.Verdict(r.Status)
	if o.RequestID != "" {
		r.RequestID = &o.RequestID
	}
	if got, err := wire.ParseFile(o.Document); err == nil && r.Upload == record.Accepted && wire.SafeID(got.ID) {
		r.FileID = &got.ID
		if matches(b.plan, f.File, got) {
			r.FileProof = &record.Proof{FileID: got.ID, RecordDigest: b.digest(f)}
		}
	}
	return r
}

// judge is the table of answers (S77): it says whether the batch goes on.
func (b *batch) judge(ctx context.Context, f *item, answer *search.FileAnswer, err error) bool {
	s, _ := errors.AsType[*search.Error](err)
	switch {
	case b.scribe.j.Failed() != nil, f.unsent:
		return b.stop(err) // a record could not be written, or nothing was sent
	case f.state.Upload == record.Accepted && err != nil:
		return b.stop(err) // accepted, but its answer could not be read: no readback
	case f.state.Upload == record.Accepted:
		if answer.File != nil && contradicts(b.plan, f.File, *answer.File) {
			return b.stop(fail(codeMetadataUnverified, "the service accepted "+quote(f.Path)+" but its response shows another file or an error"))
		}
		return true
	case s.Status == http.StatusUnsupportedMediaType:
		b.failed(err) // the type is not supported; other files may be
		return true
	case s.Status == http.StatusTooManyRequests && !b.retried && !s.Permanent() && !b.tool.NoQueueRetry:
		return b.retry(ctx, f, s)
	case f.state.Upload == record.Rejected:
		return b.stop(err)
	}
	b.stop(err)
	b.readback(ctx)
	return false
}

// readback lists the files once after an answer that leaves the outcome of a file open. It can
// prove a file and never free one (S124).
func (b *batch) readback(ctx context.Context) {
	if err := b.look(ctx, b.newSequence(maxRequests), progress.Verify); err != nil {
		b.failed(err)
	}
}

// retry is the route after the first 429 on an upload (S80-S87): wait as the server asked, look
// whether anything changed, and send the same bytes once more. The authority for that is the
// received 429, not the absence of the file (S83).
func (b *batch) retry(ctx context.Context, f *item, throttled *search.Error) bool {
	b.retried = true
	seq := b.newSequence(maxRequests + 1)
	if err := seq.Wait(ctx, toRecovery("", throttled)); err != nil {
		b.stop(throttled)
		b.failed(err)
		return false
	}
	if err := b.preflight(ctx, f, seq); err != nil {
		b.stop(err)
		b.failed(throttled)
		return false
	}
	if f.state.Verification == record.Confirmed {
		b.out.warn("upload-throttled", "the answer for "+quote(f.Path)+" was 429, but the service has the file; it was not sent again")
		return true // S82
	}
	first, _ := b.scribe.j.Record().Entry(journal.Numbered(record.TypeResult, f.number))
	a := b.attempt(f)
	name := journal.Numbered(record.TypeRetryAttempt, f.number)
	if _, err := b.scribe.j.Append(name, record.RetryAttempt{
		OriginalPlanDigest: a.OriginalPlanDigest, RecordDigest: a.RecordDigest, CreationAckDigest: a.CreationAckDigest, RejectedResultDigest: first.Digest,
	}); err != nil {
		f.state, f.unsent = record.State{Upload: record.Unverified, Attempts: f.state.Attempts}, true
		return b.stop(err)
	}
	answer, err := b.post(ctx, f, name, journal.Numbered(record.TypeRetryResult, f.number))
	if !f.unsent {
		b.out.warn("upload-throttled", "the first answer for "+quote(f.Path)+" was 429; it was sent once more after the wait")
	}
	return b.judge(ctx, f, answer, err)
}

// preflight is everything between the wait and the repetition, in the order of S81.
func (b *batch) preflight(ctx context.Context, f *item, seq *recovery.Sequence) error {
	if err := b.clear(); err != nil { // by wall clock (S85)
		return err
	}
	now, err := b.getSource(ctx, seq)
	if err != nil {
		return err
	}
	if now.absent || now.etag != b.etag || !sameDefinition(now.definition, b.plan.Source.Definition) {
		return fail(codeSourceDrift, "the knowledge source is no longer what this run created")
	}
	if err := b.look(ctx, seq, progress.Upload); err != nil {
		if f := explain(err); f.code == codeRecordConflict {
			f.code = codeRetryConflict
			return f
		}
		return err
	}
	if f.state.Verification == record.Confirmed {
		return nil
	}
	if err := b.root.Check(ctx, f.Local()); err != nil {
		return err
	}
	if seq.Remaining() == 0 {
		return &recovery.Stop{Code: recovery.CodeBudget}
	}
	return b.clear()
}
