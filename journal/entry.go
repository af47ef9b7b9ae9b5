package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// Entry is one file of a journal whose wrapper and integrity have been checked.
type Entry struct {
	// Name is the file name, Type the layout's name for its kind, Number its number or -1 for a
	// single file.
	Name   string
	Type   string
	Number int
	// Payload is the payload in canonical form. It must not be changed.
	Payload json.RawMessage
	// Digest is the payload's digest, which the file repeats as its integrity.
	Digest string

	prefix string // of the layout's codes
	link   *link  // nil for the marker, the head, and entries of a version that wrote none
}

// Decode reads the payload into v, a pointer to a struct that this program writes such payloads
// from: every member of v must be present, as encoding/json writes it, and nothing else. What is
// wrong is an [*Error] that names the member.
func (e Entry) Decode(v any) error {
	err := strictjson.Exact(e.Payload, v)
	if wrong, ok := errors.AsType[*strictjson.Error](err); ok {
		return &Error{Code: CodeInvalid, Prefix: e.prefix, Entry: e.Name, Field: wrong.Field, Reason: wrong.Reason}
	}
	return err
}

// wrapper is the outside of every file (spec section 14).
type wrapper struct {
	SchemaVersion string          `json:"schema_version"`
	Kind          string          `json:"kind"`
	Payload       json.RawMessage `json:"payload"`
	Integrity     string          `json:"integrity"`
	Chain         *link           `json:"chain,omitempty"`
}

// seal builds an entry and the bytes of its file.
func (l *Layout) seal(name string, payload any, k *link) (Entry, []byte, error) {
	canonical, err := strictjson.Canonical(payload)
	if err != nil {
		return Entry{}, nil, l.foreign(name, err)
	}
	e := l.entry(name, canonical)
	e.link = k
	data, err := l.wrap(e)
	if err != nil {
		return Entry{}, nil, l.foreign(name, err)
	}
	// What cannot be read back must not be written.
	if _, err := l.unseal(name, data); err != nil {
		return Entry{}, nil, err
	}
	return e, append(data, '\n'), nil
}

func (l *Layout) entry(name string, payload []byte) Entry {
	return Entry{Name: name, Number: -1, Payload: payload, Digest: strictjson.DigestBytes(payload), prefix: l.prefix()}
}

// unseal reads the bytes of a file.
func (l *Layout) unseal(name string, data []byte) (Entry, error) {
	canonical, err := strictjson.Check(data)
	if err != nil {
		return Entry{}, l.foreign(name, err)
	}
	// Read from the canonical form, so that the payload comes out canonical too. The strict reading
	// is only done to say what is wrong.
	var w wrapper
	_ = json.Unmarshal(canonical, &w)
	e := l.entry(name, w.Payload)
	e.link = w.Chain
	if want, err := l.wrap(e); err == nil && bytes.Equal(canonical, want) && len(w.Payload) > 0 && w.Payload[0] == '{' {
		return e, nil
	}
	if err := strictjson.Exact(canonical, &w); err != nil {
		return Entry{}, l.foreign(name, err)
	}
	switch {
	case w.SchemaVersion != version:
		return Entry{}, l.fault(CodeInvalid, name, "schema_version", "must be %q", version)
	case w.Kind != l.Kind:
		return Entry{}, l.fault(CodeInvalid, name, "kind", "must be %q", l.Kind)
	case len(w.Payload) == 0 || w.Payload[0] != '{':
		return Entry{}, l.fault(CodeInvalid, name, "payload", "must be an object")
	}
	return Entry{}, l.fault(CodeInvalid, name, "integrity", "is not the digest of the payload")
}

// wrap is the canonical form of an entry's file, put together from its parts: the member names are
// in order.
func (l *Layout) wrap(e Entry) ([]byte, error) {
	kind, err := strictjson.Canonical(l.Kind)
	if err != nil {
		return nil, err
	}
	var place []byte
	if e.link != nil {
		if place, err = strictjson.Canonical(e.link); err != nil {
			return nil, err
		}
		place = slices.Concat([]byte(`"chain":`), place, []byte(","))
	}
	return slices.Concat([]byte(`{`), place, []byte(`"integrity":"`+e.Digest+`","kind":`), kind, []byte(`,"payload":`), e.Payload,
		[]byte(`,"schema_version":"`+version+`"}`)), nil
}

// Record is the content of a journal: a verified view in memory. The Record of a [Journal] grows
// with it; that of [Read] stays as it is.
type Record struct {
	layout       *Layout
	planDigest   string
	entries      map[string]Entry
	facts        map[string]Facts
	restrictions []Restriction
	transfers    []transfer
	chain        []chained // in the order of writing
	displaced    bool      // the head that should be there is not
	behind       bool      // the head is there, and names an earlier entry than the last
	pending      *marker
	marker       []byte // the file that pending was read from
	warnings     []string
}

func newRecord(l *Layout) *Record {
	return &Record{layout: l, entries: map[string]Entry{}, facts: map[string]Facts{}}
}

// Entry finds one of the caller's entries by file name.
func (r *Record) Entry(name string) (Entry, bool) {
	e, ok := r.entries[name]
	return e, ok
}

// Entries gives the caller's entries of one type in the order of their numbers.
func (r *Record) Entries(typeName string) []Entry {
	var list []Entry
	for _, e := range r.entries {
		if e.Type == typeName {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return a.Number - b.Number })
	return list
}

// Restrictions gives the restrictions in the order of their chain.
func (r *Record) Restrictions() []Restriction { return slices.Clone(r.restrictions) }

// Restriction finds a restriction by its digest.
func (r *Record) Restriction(digest string) (Restriction, bool) {
	for _, e := range r.restrictions {
		if e.Digest == digest {
			return e, true
		}
	}
	return Restriction{}, false
}

// RestrictionOf finds the restriction that names an entry as its attempt.
func (r *Record) RestrictionOf(attempt string) (Restriction, bool) {
	for _, e := range r.restrictions {
		if attempt != "" && e.Attempt == attempt {
			return e, true
		}
	}
	return Restriction{}, false
}

// Unfinished names the open entries that no entry closes, in order. [Record.RestrictionOf] says
// which of them a restriction nevertheless ends.
func (r *Record) Unfinished() []string {
	closed := map[string]bool{}
	for _, f := range r.facts {
		if f.Closes != "" {
			closed[f.Closes] = true
		}
	}
	var open []string
	for name, f := range r.facts {
		if f.Open && !closed[name] {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return open
}

// Pending reports whether there is a marker of a request whose outcome is not recorded. A marker
// whose nonce a restriction or an entry carries is finished and does not count. [Record.Doubts]
// describes the request.
func (r *Record) Pending() bool { return r.pending != nil && !r.finished(r.pending.Nonce) }

func (r *Record) finished(nonce string) bool {
	for _, e := range r.restrictions {
		if e.Nonce == nonce {
			return true
		}
	}
	for _, f := range r.facts {
		if f.Nonce == nonce {
			return true
		}
	}
	return false
}

// Warnings describes harmless leftovers that were found, each a sentence.
func (r *Record) Warnings() []string { return slices.Clone(r.warnings) }

// Digest is one digest over the names and digests of everything in the journal but a marker.
func (r *Record) Digest() string {
	return r.digestExcept(nil)
}

func (r *Record) digestOf(name string) string {
	if e, ok := r.entries[name]; ok {
		return e.Digest
	}
	for _, e := range r.restrictions {
		if e.Name == name {
			return e.Digest
		}
	}
	for _, t := range r.transfers {
		if t.name == name {
			return t.digest
		}
	}
	return ""
}

func (r *Record) names() []string {
	names := make([]string, 0, len(r.entries)+r.events())
	for name := range r.entries {
		names = append(names, name)
	}
	for _, e := range r.restrictions {
		names = append(names, e.Name)
	}
	for _, t := range r.transfers {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}
