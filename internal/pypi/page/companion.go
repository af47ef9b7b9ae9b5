package page

import (
	"slices"

	"github.com/ecluse-gate/ecluse/internal/listing"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// companions is what a file's object says of its companion, under up to three keys.
type companions struct {
	fields [3]struct {
		key, value listing.Span // value is empty when it is null
		present    bool
	}
	digests [3][]registry.Digest
}

// The keys, in the order in which they are believed (PEP 714).
const (
	companionCore = iota
	companionDistInfo
	companionLegacy
)

// companion consumes the value of one of the keys.
func (s *scan) companion(r *rawFile, f field, all *companions) {
	which := companionCore
	if f == fieldDistInfo {
		which = companionDistInfo
	} else if f == fieldLegacyCore {
		which = companionLegacy
	}
	c := &all.fields[which]
	c.key, c.present = s.Key(), true
	start := uint32(s.Pos())
	if s.Peek() != '{' {
		kind := s.Peek()
		c.value = s.optional(r, kind == 't' || kind == 'f')
		return
	}
	if which != companionCore && s.repeats(all.fields[companionCore].value) {
		c.value = s.Skip()
		return
	}
	digests, ok := s.hashes()
	r.bad = r.bad || !ok
	all.digests[which], c.value = digests, s.Since(start)
}

// repeats reports whether the next value is spelled as one before it, which is what an index that
// gives two keys does.
func (s *scan) repeats(before listing.Span) bool {
	end := s.Pos() + before.Len()
	return !before.Empty() && end <= len(s.doc.text) && s.doc.text[s.Pos():end] == before.Of(s.doc.text)
}

// settle decides what the file advertises and what a rendering changes in its object, so that the
// keys that it has agree: "core-metadata" and "data-dist-info-metadata". "dist-info-metadata" is
// renamed, because installers of the time before PEP 714 stop at it.
func (s *scan) settle(r *rawFile, all *companions) {
	chosen := -1
	for i := range all.fields {
		if !all.fields[i].value.Empty() {
			chosen = i
			break
		}
	}
	if old := all.fields[companionDistInfo]; old.present {
		name := `"core-metadata"`
		if all.fields[companionCore].present {
			name = `"data-dist-info-metadata"`
			if all.fields[companionLegacy].present {
				// reserved for private use (PEP 700): nobody reads it
				name = `"_dist-info-metadata"`
			}
			all.fields[companionLegacy].present = true
		} else {
			all.fields[companionCore].present = true
		}
		s.doc.patches = append(s.doc.patches, patch{old.key, name})
	}
	if chosen >= 0 {
		s.advertise(r, all, chosen)
	}
	slices.SortFunc(s.doc.patches[r.patches[0]:], func(a, b patch) int { return int(a.span.Start) - int(b.span.Start) })
}

func (s *scan) advertise(r *rawFile, all *companions, chosen int) {
	r.core = all.fields[chosen].value
	value := r.core.Of(s.doc.text)
	if value[0] != 'f' {
		if len(s.companions) == cap(s.companions) { // one allocation for many
			s.companions = make([]registry.Companion, 0, 256)
		}
		s.companions = append(s.companions, registry.Companion{Digests: all.digests[chosen]})
		r.companion = &s.companions[len(s.companions)-1]
	}
	for i := range all.fields {
		// What is null or says something else follows.
		if c := &all.fields[i]; c.present && !c.key.Empty() && c.value.Of(s.doc.text) != value {
			span := c.value
			if span.Empty() {
				span = s.nullAfter(c.key)
			}
			s.doc.patches = append(s.doc.patches, patch{span, value})
		}
	}
	if !all.fields[companionCore].present {
		r.adds |= addCore
	}
	if !all.fields[companionLegacy].present {
		r.adds |= addLegacyCore
	}
}

// nullAfter is the span of the null that is the value of a key.
func (s *scan) nullAfter(key listing.Span) listing.Span {
	at := key.End
	for s.doc.text[at] != 'n' {
		at++
	}
	return listing.Span{Start: at, End: at + uint32(len("null"))}
}
