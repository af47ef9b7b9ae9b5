package listing

import (
	"bytes"
	"slices"
	"strings"
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

// Large renderings are copied by two goroutines, wherever the middle falls, and into memory that is
// not clean.
func TestAssembleLarge(t *testing.T) {
	for extra := range 12 {
		var want []byte
		build := func(s *Splicer) {
			for i := range 2*shared/7 + extra {
				s.Add("abcdefg"[:1+i%7])
			}
			s.Add(strings.Repeat("x", extra))
		}
		for i := range 2*shared/7 + extra {
			want = append(want, "abcdefg"[:1+i%7]...)
		}
		want = append(want, strings.Repeat("x", extra)...)
		if got := Assemble(build); !bytes.Equal(got, want) {
			t.Fatalf("%d: %d bytes instead of %d, or others", extra, len(got), len(want))
		}
		long := strings.Repeat("long", shared/4) // one piece over the middle
		if got := Assemble(func(s *Splicer) { s.Add("a"); s.Add(long); s.Add("z") }); string(got) != "a"+long+"z" {
			t.Fatal("one long piece")
		}
	}
}

// Bytes that nobody wrote are never handed out.
func TestAssembleOtherPieces(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a rendering with a hole")
		}
	}()
	passes := 0
	Assemble(func(s *Splicer) {
		if passes++; passes == 1 {
			s.Add("only measured")
		}
	})
}
