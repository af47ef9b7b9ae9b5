package journal

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// Options are the options of [Create] and [Open]. The zero value is right for production.
type Options struct {
	// Around stands in for every system call that changes the folder or makes a change permanent:
	// it must call the call, or fail in its place, or call it and fail all the same. It exists for
	// tests of what happens when the disk fails. step names the call: "create", "write", "fsync",
	// "read-back", "link", "check-link", "unlink-temp", "fsync-dir", "reopen", "remove",
	// "fsync-removed", "mkdir", "fsync-parent", "rename". name is the file, or the folder's path.
	Around func(step, name string, call func() error) error
}

func (o Options) durable() durable.Options {
	if o.Around == nil {
		return durable.Options{}
	}
	return durable.Options{Around: func(step durable.Step, name string, call func() error) error {
		return o.Around(string(step), name, call)
	}}
}

// Journal is a journal that this process may write to. It holds the lock of its folder until Close.
// It is for one goroutine at a time.
type Journal struct {
	dir     *durable.Dir
	layout  *Layout
	record  *Record
	latched error
	unsure  []string // the links of writes since the last certain one that failed
}

// Create starts a journal: it makes the folder with mode 0700 when there is none, refuses one that
// is not empty (CodeExists), takes the lock, and writes the founding entry. When it returns, the
// founding entry is on the disk.
func Create(dir string, l *Layout, founding any, opt Options) (*Journal, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	d, err := durable.Make(dir, opt.durable())
	if err != nil {
		return nil, l.folder(err)
	}
	j := &Journal{dir: d, layout: l, record: newRecord(l)}
	return j.ready(func() error { return j.start(founding) })
}

// ready closes the journal again, and so gives its lock back, unless prepare succeeds.
func (j *Journal) ready(prepare func() error) (_ *Journal, err error) {
	done := false
	defer func() {
		if !done {
			err = errors.Join(err, j.dir.Close())
		}
	}()
	if err := prepare(); err != nil {
		return nil, err
	}
	done = true
	return j, nil
}

func (j *Journal) start(founding any) error {
	if err := j.dir.Lock(false); err != nil {
		return j.layout.folder(err)
	}
	if err := j.layout.empty(j.dir); err != nil {
		return err
	}
	var err error
	if j.record.warnings, err = j.dir.Settle(); err != nil {
		return j.layout.folder(err)
	}
	_, err = j.Append(j.layout.founding(), founding)
	return err
}

// Open takes an existing journal's lock, completes what a killed process left unfinished, and loads
// and verifies everything. A marker whose exchange a record finishes is removed; nothing else is. A
// folder that does not exist is CodeFolder and, for errors.Is, fs.ErrNotExist as well.
func Open(dir string, l *Layout, opt Options) (*Journal, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	d, err := durable.Open(dir, opt.durable())
	if err != nil {
		return nil, l.folder(err)
	}
	j := &Journal{dir: d, layout: l}
	return j.ready(j.restore)
}

func (j *Journal) restore() error {
	if err := j.dir.Lock(false); err != nil {
		return j.layout.folder(err)
	}
	// Settling comes first: what the checks are about to rely on must not be lost by a power
	// failure later on.
	warnings, err := j.dir.Settle()
	if err != nil {
		return j.layout.folder(err)
	}
	r, faults := loadDir(j.dir, j.dir, j.layout)
	if len(faults) > 0 {
		return faults[0]
	}
	r.warnings, j.record = append(warnings, r.warnings...), r
	if r.behind {
		if err := j.layout.advance(j.dir, r); err != nil {
			return err
		}
	}
	return j.tidy()
}

// tidy removes a marker that a record finishes.
func (j *Journal) tidy() error {
	if j.record.pending == nil || j.record.Pending() || j.record.Displaced() {
		return nil
	}
	if err := j.unmark(); err != nil {
		return err
	}
	j.record.warnings = append(j.record.warnings, "removed a left-over marker of a finished request")
	return nil
}

// Close releases the lock.
func (j *Journal) Close() error { return j.dir.Close() }

// Dir is the path of the folder.
func (j *Journal) Dir() string { return j.dir.Path() }

// Record is the verified view, which grows with every write.
func (j *Journal) Record() *Record { return j.record }

// Failed is the first failure to write or remove, or nil. After it no request may be sent.
func (j *Journal) Failed() error { return j.latched }

func (j *Journal) latch(err error) error {
	if err != nil && j.latched == nil {
		j.latched = err
	}
	return err
}

// Append writes one of the caller's entries. It is checked as it will be when it is loaded; an
// entry that would make the journal invalid is refused and nothing is written. A failure to write
// is latched, and the entry may or may not be there. Append still works after a latched failure, so
// that what is already known can be recorded.
func (j *Journal) Append(name string, payload any) (Entry, error) {
	if t, _, ok := j.layout.split(name); !ok || t == nil {
		return Entry{}, j.layout.fault(CodeInvalid, name, "", "is not an entry that callers may write")
	}
	return j.write(name, payload)
}

// write seals, checks against a copy of the record, publishes, only then believes, and last names
// the entry in the head.
func (j *Journal) write(name string, payload any) (Entry, error) {
	if j.record.digestOf(name) != "" {
		return Entry{}, j.layout.fault(CodeInvalid, name, "", "already exists and is never changed")
	}
	moves := strings.HasPrefix(name, typeTransfer+"-")
	if j.record.Displaced() && !moves {
		return Entry{}, j.layout.blocked(j.record.moved())
	}
	var k *link
	if name != pendingName {
		var err error
		if k, err = j.place(name, payload, moves); err != nil {
			return Entry{}, err
		}
	}
	e, data, err := j.layout.seal(name, payload, k)
	if err != nil {
		return Entry{}, err
	}
	next := j.record.clone()
	if err := j.layout.place(next, e); err != nil {
		return Entry{}, err
	}
	if faults := next.faults(); len(faults) > 0 {
		return Entry{}, faults[0]
	}
	if j.layout.Check != nil {
		if err := j.layout.Check(next); err != nil {
			return Entry{}, j.layout.foreign(name, err)
		}
	}
	if err := j.dir.Publish(name, data); err != nil {
		j.mayBe(e)
		return Entry{}, j.latch(j.layout.folder(err))
	}
	if name == pendingName {
		next.marker = data
	}
	*j.record = *next
	return e, j.follow(e)
}

// place is the link of the entry that comes next, which also says whether a head can be kept when
// it is the first, or one that settles an export. moves says that it is a transfer.
func (j *Journal) place(name string, payload any, moves bool) (*link, error) {
	k := j.record.nextLink(j.unsure)
	if k.Number > 0 && (!moves || !j.record.Displaced()) {
		return &k, nil
	}
	digest := j.record.planDigest
	if name == j.layout.founding() { // known once it is in a record
		e, _, err := j.layout.seal(name, payload, nil)
		r := newRecord(j.layout)
		if err == nil {
			err = j.layout.place(r, e)
		}
		if err != nil {
			return nil, err
		}
		digest = r.planDigest
	}
	can, err := j.layout.canHead(j.dir, j.record, digest)
	if err != nil {
		return nil, j.latch(err)
	}
	k.Head = &can
	return &k, nil
}

// mayBe notes that an entry could not be written, and may be there all the same: what is written
// later must fit both.
func (j *Journal) mayBe(e Entry) {
	if e.link == nil {
		return
	}
	if digest, err := e.link.digest(e.Name, e.Digest); err == nil {
		j.unsure = append(j.unsure, digest)
	}
}

// follow names an entry that is on the disk in the head.
func (j *Journal) follow(e Entry) error {
	if e.link == nil {
		return nil
	}
	j.unsure = nil
	if !j.record.headed() || j.record.facts[e.Name].Closes != "" {
		return nil
	}
	if err := j.layout.advance(j.dir, j.record); err != nil {
		return j.latch(err)
	}
	j.record.displaced = false
	return nil
}

// Request names a request that is about to be sent.
type Request struct {
	Method string // GET, HEAD, POST or PUT
	URL    string // the URL exactly as it will be sent; only its digest is recorded
	// Attempt is the file name of the open entry that this POST carries out, or "".
	Attempt string
}

// Exchange is one request between its marker and its recorded outcome.
type Exchange struct {
	j       *Journal
	request Request
	marker  marker
}

// Begin asks whether a request may be sent at now and, if so, writes the marker. It refuses with a
// latched earlier failure, with CodeWaiting or CodeUnresolved and the status in the error, and with
// CodeLimit when a restriction could no longer be recorded. Nothing may be sent when it fails.
func (j *Journal) Begin(now time.Time, q Request) (*Exchange, error) {
	if j.latched != nil {
		return nil, j.latched
	}
	if s := j.record.Status(now, q.Attempt); !s.May() {
		return nil, j.layout.blocked(s)
	}
	if j.record.Full() {
		return nil, j.layout.full()
	}
	if q.Attempt != "" && (q.Method != "POST" || !j.record.facts[q.Attempt].Open) {
		return nil, j.layout.fault(CodeInvalid, q.Attempt, "", "is not an attempt that a POST can belong to")
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails, see crypto/rand
	x := &Exchange{j: j, request: q, marker: marker{
		Version: version, PlanDigest: j.record.planDigest, Nonce: hex.EncodeToString(raw[:]), Method: q.Method,
		URLDigest: urlDigest(q.URL),
	}}
	_, err := j.write(pendingName, x.marker)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (l *Layout) full() *Error {
	return l.fault(CodeLimit, "", "", "the journal is full: it has %d restrictions and transfers, the most allowed", MaxRestrictions)
}

func (l *Layout) blocked(s Status) *Error {
	if s.State == Waiting {
		e := l.fault(CodeWaiting, "", "", "the server asked for no requests before %s",
			time.Unix(*s.NotBeforeUTC, 0).UTC().Format(time.RFC3339))
		e.Status = &s
		return e
	}
	reason := s.Reason
	if reason == ReasonMoved {
		reason = "the journal goes on elsewhere, or this may be an older copy of it: it was exported, or what was kept beside its folder is missing"
	}
	e := l.fault(CodeUnresolved, "", "", "%s", reason)
	e.Status = &s
	return e
}

// Gate is the check that Begin makes, for callers that must know before they do anything else, such
// as asking for a token.
func (r *Record) Gate(now time.Time) error {
	if s := r.Status(now, ""); !s.May() {
		return r.layout.blocked(s)
	}
	return nil
}

// Nonce is what an entry that finishes this exchange must carry.
func (x *Exchange) Nonce() string { return x.marker.Nonce }

// Restrict records the restriction that a throttled answer carried, and then removes the marker.
// When the restriction could not be written the marker stays, so that the next run knows. The
// digest of the recorded one is what a result names as its restriction; it is returned together
// with the error when what failed came after it.
func (x *Exchange) Restrict(r Restriction) (Restriction, error) {
	e, err := x.j.write(x.j.record.nextRestriction(), x.stored(r))
	recorded, _ := x.j.record.Restriction(e.Digest)
	if err != nil {
		return recorded, x.j.latch(err)
	}
	return recorded, x.Done()
}

func (x *Exchange) stored(r Restriction) stored {
	b := stored{
		Version: version, PlanDigest: x.marker.PlanDigest, Previous: x.j.record.last(), Method: x.marker.Method,
		URLDigest: x.marker.URLDigest, Nonce: &x.marker.Nonce, Metadata: object(r.Metadata), Timing: r.Timing, Origin: r.Origin,
	}
	if id := requestid.Sanitize(r.RequestID); id != "" {
		b.RequestID = &id
	}
	if a, ok := x.j.record.entries[x.request.Attempt]; ok {
		b.Attempt, b.AttemptDigest = &a.Name, &a.Digest
	}
	return b
}

// Done removes the marker: the exchange is over, and its outcome is recorded. The marker is removed
// only while it holds what Begin wrote. A failure is latched.
func (x *Exchange) Done() error { return x.j.unmark() }

func (j *Journal) unmark() error {
	if err := j.dir.Remove(pendingName, j.record.marker); err != nil {
		return j.latch(j.layout.folder(err))
	}
	j.record.pending, j.record.marker = nil, nil
	return nil
}

// last is the digest of the last restriction, or nil.
func (r *Record) last() *string {
	if len(r.restrictions) == 0 {
		return nil
	}
	d := r.restrictions[len(r.restrictions)-1].Digest
	return &d
}

func (r *Record) nextRestriction() string { return Numbered(typeRestriction, len(r.restrictions)) }

// object is raw, or the empty object.
func object(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

func (r *Record) clone() *Record {
	c := *r
	c.entries, c.facts, c.restrictions = maps.Clone(r.entries), maps.Clone(r.facts), slices.Clone(r.restrictions)
	c.transfers, c.chain = slices.Clone(r.transfers), slices.Clone(r.chain)
	return &c
}
