package source

import (
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// scribe brackets every request with the journal: marker first, then the request, then what was
// learnt, then the marker goes (S101-S105). Without a journal it only keeps the request ids.
type scribe struct {
	now func() time.Time
	j   *journal.Journal
	// next is what the coming request is, if it is more than a read.
	next intent

	open *journal.Exchange
	ids  []string
}

// intent is a write that the journal keeps the outcome of.
type intent struct {
	// attempt is the entry that announced an upload, "" for other writes.
	attempt string
	// conclude records the outcome with the marker's nonce; r is the restriction that a 429
	// brought, nil without one.
	conclude func(o search.Outcome, nonce string, r *journal.Restriction) error
}

// maxIDs bounds what one outcome lists.
const maxIDs = 1000

// Begin writes the marker, or refuses while a restriction holds.
func (s *scribe) Begin(method, url string) error {
	if s.j == nil {
		return nil
	}
	attempt := ""
	if method == http.MethodPost {
		attempt = s.next.attempt
	}
	x, err := s.j.Begin(s.now(), journal.Request{Method: method, URL: url, Attempt: attempt})
	s.open = x
	return err
}

// End records what was learnt and takes the marker away. For a 429 the restriction goes first, so
// that a crash cannot lose it; for everything else the outcome goes before the marker, so that a
// crash in between is seen to be one after the answer.
func (s *scribe) End(o search.Outcome) error {
	if o.RequestID != "" && len(s.ids) < maxIDs {
		s.ids = append(s.ids, o.RequestID)
	}
	x, conclude := s.open, s.next.conclude
	s.open, s.next = nil, intent{}
	if x == nil {
		return nil
	}
	if conclude == nil {
		conclude = func(search.Outcome, string, *journal.Restriction) error { return nil }
	}
	if o.Status == http.StatusTooManyRequests {
		r, err := x.Restrict(record.FromHeaders(o.RetryAfter, o.RequestID))
		if err != nil {
			return err
		}
		return conclude(o, x.Nonce(), &r)
	}
	if err := conclude(o, x.Nonce(), nil); err != nil {
		return err
	}
	return x.Done()
}
