package journal

import (
	"cmp"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// faults checks the entries against each other: numbering, chain, and every reference from one to
// another.
func (r *Record) faults() []*Error {
	var all []*Error
	for _, check := range []func() []*Error{r.numbering, r.sequence, r.attempts, r.closings, r.nonces, r.ends, r.moves, r.links, r.markerFaults} {
		all = append(all, check()...)
	}
	return all
}

func (r *Record) invalid(entry, field, why string) *Error {
	return r.layout.fault(CodeInvalid, entry, field, "%s", why)
}

// numbering finds gaps in dense series.
func (r *Record) numbering() (all []*Error) {
	for _, t := range r.layout.Types {
		if !t.Dense || t.Max == 0 {
			continue
		}
		for i, e := range r.Entries(t.Name) {
			if e.Number != i {
				all = append(all, r.invalid(e.Name, "", "there is a gap in the numbering before it"))
				break
			}
		}
	}
	return all
}

// sequence follows the restrictions from the first to the last.
func (r *Record) sequence() (all []*Error) {
	var previous *string
	for i, e := range r.restrictions {
		switch {
		case e.Number != i:
			return append(all, r.invalid(e.Name, "", "there is a gap in the numbering before it"))
		case (e.previous == nil) != (previous == nil), previous != nil && *e.previous != *previous:
			all = append(all, r.invalid(e.Name, "previous", "is not the digest of the restriction before it"))
		}
		previous = &r.restrictions[i].Digest
	}
	return all
}

// attempts checks what restrictions say about attempts.
func (r *Record) attempts() (all []*Error) {
	named := map[string]string{}
	for _, e := range r.restrictions {
		if e.Attempt == "" {
			continue
		}
		entry, ok := r.entries[e.Attempt]
		facts := r.facts[e.Attempt]
		switch {
		case !ok || !facts.Open:
			all = append(all, r.invalid(e.Name, "attempt", "is not an attempt of this journal"))
		case entry.Digest != deref(e.attemptDigest):
			all = append(all, r.invalid(e.Name, "attempt_digest", "is not the digest of the attempt"))
		case facts.URL != "" && urlDigest(facts.URL) != e.URLDigest:
			all = append(all, r.invalid(e.Name, "url_digest", "is not the URL of the attempt"))
		case named[e.Attempt] != "":
			all = append(all, r.invalid(e.Name, "attempt", "is also in another restriction"))
		}
		named[e.Attempt] = e.Name
	}
	return all
}

// closings checks which entry closes which, and that one which names a restriction rests on exactly
// its own.
func (r *Record) closings() (all []*Error) {
	closedBy := map[string]string{}
	for _, name := range sorted(r.facts) {
		f := r.facts[name]
		if f.Closes == "" {
			if f.Restriction != "" {
				all = append(all, r.invalid(name, "", "records an answer without an attempt"))
			}
			continue
		}
		if !r.facts[f.Closes].Open {
			all = append(all, r.invalid(name, "", "concludes an attempt that does not exist"))
			continue
		}
		if closedBy[f.Closes] != "" {
			all = append(all, r.invalid(name, "", "concludes an attempt that another entry also concludes"))
		}
		closedBy[f.Closes] = name
		if why := r.restrictionFault(f); why != "" {
			all = append(all, r.invalid(name, cmp.Or(f.RestrictionField, "restriction"), why))
		}
	}
	return all
}

// restrictionFault compares an entry that closes an attempt with the restriction of that attempt,
// in both directions.
func (r *Record) restrictionFault(f Facts) string {
	of, named := r.RestrictionOf(f.Closes)
	if f.Restriction == "" {
		switch {
		case named && of.Review != nil:
			return "an operator has recorded that this attempt has no result"
		case named:
			return "omits the restriction of its attempt"
		}
		return ""
	}
	switch {
	case !named || of.Digest != f.Restriction:
		return "is not the restriction of its attempt"
	case of.RequestID != f.RequestID:
		return "has a different request identifier than the answer"
	case of.Nonce != f.Nonce:
		return "belongs to another request than the answer"
	}
	return ""
}

// ends checks the statements that end a restriction: each names an earlier one that could be
// contested when it was reviewed, and that no other statement ends.
func (r *Record) ends() (all []*Error) {
	ended := map[string]bool{}
	for _, e := range r.restrictions {
		if e.Review == nil || e.Review.Ends == "" {
			continue
		}
		reviewed := *e.Timing.ReceivedAtUTC
		of, ok := r.Restriction(e.Review.Ends)
		received := of.Timing.ReceivedAtUTC
		switch why := e.Review.Why; {
		case !ok || of.Number >= e.Number || of.Method != e.Method || of.URLDigest != e.URLDigest:
			all = append(all, r.invalid(e.Name, "review.ends", "is not the digest of an earlier restriction of that request"))
		case ended[e.Review.Ends]:
			all = append(all, r.invalid(e.Name, "review.ends", "is the digest of a restriction that another statement ends"))
		case received == nil, why != ReasonRegression && why != ReasonNoEnd, (why == ReasonRegression) != (*received > reviewed), why == ReasonNoEnd && !of.long():
			all = append(all, r.invalid(e.Name, "review.why", "does not follow from the restriction"))
		case why == ReasonRegression && *e.Timing.NotBeforeUTC < of.restarted(reviewed):
			all = append(all, r.invalid(e.Name, "timing.not_before_utc", "is before the wait that the server asked for has passed"))
		}
		ended[e.Review.Ends] = true
	}
	return all
}

// nonces makes sure that no request is finished twice. An entry and its restriction share one; a
// review repeats that of the restriction whose end it states.
func (r *Record) nonces() (all []*Error) {
	by := map[string]Restriction{}
	for _, e := range r.restrictions {
		if e.Nonce == "" {
			continue
		}
		first, used := by[e.Nonce]
		if states := e.Review != nil && first.Review == nil && first.Timing.NotBeforeUTC == nil; used && !states {
			all = append(all, r.invalid(e.Name, "nonce", "finishes a request that is already finished"))
		}
		by[e.Nonce] = e
	}
	taken := map[string]bool{}
	for _, name := range sorted(r.facts) {
		f := r.facts[name]
		if f.Nonce == "" {
			continue
		}
		if e, ok := by[f.Nonce]; taken[f.Nonce] || ok && !r.shares(f, e) {
			all = append(all, r.invalid(name, "nonce", "finishes a request that is already finished"))
		}
		if !strictjson.IsHex(f.Nonce, 32) {
			all = append(all, r.invalid(name, "nonce", "must be 32 lower-case hex digits"))
		}
		taken[f.Nonce] = true
	}
	return all
}

// shares reports whether an entry may carry the nonce of a restriction: it rests on it, or on the
// one whose end it states.
func (r *Record) shares(f Facts, e Restriction) bool {
	own, ok := r.Restriction(f.Restriction)
	return ok && own.Nonce == e.Nonce
}

// markerFaults checks a leftover marker against the restriction that finishes it.
func (r *Record) markerFaults() []*Error {
	if r.pending == nil {
		return nil
	}
	for _, e := range r.restrictions {
		if e.Nonce == r.pending.Nonce && (e.Method != r.pending.Method || e.URLDigest != r.pending.URLDigest) {
			return []*Error{r.invalid(e.Name, "nonce", "finishes a request with a different method or URL")}
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// String is one line for a person.
func (r Restriction) String() string { return r.Name + ": " + r.Method + " (" + r.Origin + ")" }

func urlDigest(url string) string { return strictjson.DigestBytes([]byte(url)) }
