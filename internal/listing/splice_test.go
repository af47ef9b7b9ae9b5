package listing

import (
	"slices"
	"testing"
)

func TestAssemble(t *testing.T) {
	got := Assemble(func(s *Splicer) {
		s.Add("[")
		list := s.List()
		for _, item := range []string{"1", "22", "333"} {
			list.Item()
			s.Add(item)
		}
		s.Add("]")
	})
	if string(got) != "[1,22,333]" || cap(got) != len(got) {
		t.Errorf("%q, capacity %d", got, cap(got))
	}
	empty := Assemble(func(s *Splicer) { _ = s.List() })
	if len(empty) != 0 {
		t.Errorf("%q", empty)
	}
}

// A cut is an offset of the rendering: none at its start, none twice.
func TestAssembleRuns(t *testing.T) {
	out, cuts := AssembleRuns(func(s *Splicer) {
		s.Cut()
		s.Add("head")
		s.Cut()
		s.Cut()
		s.Add("")
		s.Cut()
		s.Add("run")
		s.Cut()
	})
	if string(out) != "headrun" || !slices.Equal(cuts, []int{4, 7}) {
		t.Errorf("%q, cuts %v", out, cuts)
	}
}
