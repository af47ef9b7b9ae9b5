package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
)

// The types of entries.
const (
	TypeRun          = "run"
	TypeSourceAck    = "source-ack"
	TypeAttempt      = "attempt"
	TypeResult       = "result"
	TypeRetryAttempt = "retry-attempt"
	TypeRetryResult  = "retry-result"
)

// The names of the single entries.
const (
	RunName       = TypeRun + ".json"
	SourceAckName = TypeSourceAck + ".json"
)

// NewLayout describes a File run's journal: at most 3 + 4 x 200 + 200 files (S114). Each value
// keeps what it has read, so that nothing is read again when the next entry is checked against all
// others: use one for each journal.
func NewLayout() *journal.Layout {
	b := &book{read: map[string]any{}}
	return &journal.Layout{
		Kind:   "file-upload-journal",
		Prefix: "file-upload",
		Types: []journal.Type{
			{Name: TypeRun},
			{Name: TypeSourceAck, Required: true, Facts: b.sourceAckFacts},
			{Name: TypeAttempt, Max: plan.MaxFiles, Facts: attemptFacts[Attempt](b)},
			{Name: TypeResult, Max: plan.MaxFiles, Facts: func(e journal.Entry) (journal.Facts, error) { return b.resultFacts(e, TypeAttempt) }},
			{Name: TypeRetryAttempt, Max: plan.MaxFiles, Facts: attemptFacts[RetryAttempt](b)},
			{Name: TypeRetryResult, Max: plan.MaxFiles, Facts: func(e journal.Entry) (journal.Facts, error) { return b.resultFacts(e, TypeRetryAttempt) }},
		},
		PlanDigest: b.planDigest, Restriction: checkRestriction, Check: b.check,
	}
}

// book remembers the plan behind the founding entry.
type book struct {
	mu      sync.Mutex // guards the fields below
	payload string
	open    *Opened
	bodies  map[string]string // record digests by path, worked out once
	// *SourceAck, *Attempt, *RetryAttempt or *Result by the digest of the entry
	read map[string]any
}

// Opened is what the founding entry says.
type Opened struct {
	Run      Run
	Envelope *plan.Envelope
	// UploadURL is where the files go.
	UploadURL string
}

// Plan is the plan of the run.
func (o *Opened) Plan() *plan.Plan { return o.Envelope.File }

func fault(field, format string, args ...any) error {
	return &journal.Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// inside is the fault of a document below a member.
func inside(member string, err error) error {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return fault(strings.Trim(member+"."+e.Field, "."), "%s", e.Reason)
	}
	return err
}

func (b *book) planDigest(founding journal.Entry) (string, error) {
	o, err := b.opened(founding.Payload)
	if err != nil {
		return "", err
	}
	if v := o.Run.BackoffVersion; v != "" && v != BackoffVersion {
		return "", fault("backoff_version", `must be "1.0" or absent`)
	}
	return o.Envelope.Digest(), nil
}

func (b *book) opened(payload json.RawMessage) (*Opened, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil && b.payload == string(payload) {
		return b.open, nil
	}
	o, err := openRun(payload)
	if err != nil {
		return nil, err
	}
	b.payload, b.open, b.bodies = string(payload), o, map[string]string{}
	return o, nil
}

// openRun reads a founding payload. The retained plan is held to every rule that a fresh one is
// held to (S122).
func openRun(payload json.RawMessage) (*Opened, error) {
	o := &Opened{}
	tree, err := strictjson.Parse(payload)
	if err == nil {
		err = strictjson.Fill(tree, &o.Run)
	}
	if err != nil {
		return nil, inside("", err)
	}
	if o.Envelope, err = plan.FromDocument(o.Run.Document); err != nil {
		if r, ok := errors.AsType[*plan.Refusal](err); ok {
			return nil, fault("document."+r.Field, "%s", r.Message)
		}
		return nil, fault("document", "is not an approved plan")
	}
	p := o.Envelope.File
	if p == nil || !o.Envelope.Approval.Confirmed {
		return nil, fault("document", "is not an approved plan of a File source")
	}
	service, _, err := plan.Address(p.Endpoint, p.APIVersion, p.Source.Name)
	if err != nil {
		return nil, fault("document.plan.endpoint", "is not an address of a search service")
	}
	if o.UploadURL, err = service.UploadURL(p.Source.Name); err != nil {
		return nil, fault("document.plan.source.name", "cannot be a name")
	}
	return o, nil
}

// Open reads the founding entry of a verified record.
func Open(r *journal.Record) (*Opened, error) {
	e, ok := r.Entry(RunName)
	if !ok {
		return nil, fault("", "the founding entry is missing")
	}
	return openRun(e.Payload)
}

// decode reads an entry's payload into a new T, once: the founding entry is always read before any
// other, and no entry ever changes.
func decode[T any](b *book, e journal.Entry) (*T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.read[e.Digest].(*T); ok {
		return known, nil
	}
	fresh := new(T)
	if err := e.Decode(fresh); err != nil {
		return nil, err
	}
	b.read[e.Digest] = fresh
	return fresh, nil
}

func (b *book) sourceAckFacts(e journal.Entry) (journal.Facts, error) {
	ack, err := decode[SourceAck](b, e)
	if err != nil {
		return journal.Facts{}, err
	}
	return journal.Facts{Nonce: deref(ack.Nonce)}, checkNonce(ack.Nonce)
}

// checkNonce refuses a nonce that no marker can have: an empty one would pass for none.
func checkNonce(nonce *string) error {
	if nonce != nil && !strictjson.IsHex(*nonce, 32) {
		return fault("nonce", "must be 32 lower-case hex digits or null")
	}
	return nil
}

// attemptFacts says where an attempt goes.
func attemptFacts[T any](b *book) func(journal.Entry) (journal.Facts, error) {
	return func(e journal.Entry) (journal.Facts, error) {
		_, err := decode[T](b, e)
		return journal.Facts{Open: true, URL: b.uploadURL()}, err
	}
}

func (b *book) uploadURL() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return ""
	}
	return b.open.UploadURL
}

// legacy reports whether the run is from before restrictions were recorded (S113).
func (b *book) legacy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open != nil && b.open.Run.BackoffVersion == ""
}

func (b *book) resultFacts(e journal.Entry, attempt string) (journal.Facts, error) {
	r, err := decode[Result](b, e)
	if err != nil {
		return journal.Facts{}, err
	}
	f := journal.Facts{
		Closes: journal.Numbered(attempt, e.Number), Nonce: deref(r.Nonce), Restriction: deref(r.ThrottleEvent),
		RestrictionField: "throttle_event", RequestID: deref(r.RequestID),
	}
	switch throttled := r.Status != nil && *r.Status == 429; {
	case throttled && r.ThrottleEvent == nil && b.legacy():
		f.Unresolved = ReasonLegacy
	case throttled && r.ThrottleEvent == nil:
		return f, fault("throttle_event", "is missing on a throttled answer")
	case !throttled && r.ThrottleEvent != nil:
		return f, fault("throttle_event", "belongs to a throttled answer only")
	}
	if err := checkNonce(r.Nonce); err != nil {
		return f, err
	}
	return f, r.check()
}

// check holds a result to its own rules (section 14).
func (r Result) check() error {
	switch {
	case r.Status != nil && (*r.Status < 100 || *r.Status > 599):
		return fault("status", "must be 100 to 599 or null")
	case r.Upload != Verdict(r.Status):
		return fault("upload", "does not follow from the status")
	case r.RequestID != nil && !SafeID(*r.RequestID) && *r.RequestID != requestid.Withheld:
		return fault("request_id", "is not a safe identifier")
	case r.FileID != nil && (r.Upload != Accepted || !SafeID(*r.FileID)):
		return fault("file_id", "must be a safe identifier of an accepted upload")
	case r.FileProof != nil && (r.FileID == nil || r.FileProof.FileID != *r.FileID):
		return fault("file_proof", "needs the same file_id")
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
