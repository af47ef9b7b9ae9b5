package npm

import (
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/listing"
)

// recall is what the versions before said. The versions of a package repeat each other: of large real documents one half and more are members of just
// the same bytes as in the version before. Such a member is valid and means the same, so that it is compared and not read again.
type recall struct {
	off   bool // everything is read; for tests
	at    int  // the member that is expected next
	spare told // for a member that is not remembered
}

// told is a member of a version and what it says.
type told struct {
	span    listing.Span
	field   field
	flags   flags
	license string
}

const (
	maxKnown = 64 // members of a version that are remembered
	maxAhead = 8  // members that are looked through for one that has moved
)

// repeated takes the next member of a version if it is what was expected, byte for byte; otherwise it returns nil.
func (s *scan) repeated() *told {
	k := &s.recall
	if k.at >= len(s.known) {
		return nil
	}
	m := &s.known[k.at]
	if m.field&fieldFresh != 0 {
		return nil
	}
	span, ok := s.Repeat(m.span)
	if !ok {
		return nil
	}
	m.span = span
	k.at++
	return m
}

// remember gives the place for a member that is read, and expects the one that followed it the last time.
func (s *scan) remember(key string) *told {
	k := &s.recall
	if k.off {
		return &k.spare
	}
	for i := k.at; i < min(k.at+maxAhead, len(s.known)); i++ {
		if strings.HasPrefix(s.known[i].span.Of(s.doc.text), key) {
			k.at = i + 1
			return &s.known[i]
		}
	}
	switch {
	case len(s.known) < maxKnown:
		s.known = slices.Insert(s.known, k.at, told{})
	case k.at == len(s.known):
		return &k.spare
	}
	k.at++
	return &s.known[k.at-1]
}
