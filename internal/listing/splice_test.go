package listing

import "testing"

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
