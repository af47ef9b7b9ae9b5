package listing

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100, 5000} {
		name := strconv.Itoa
		var names Names
		for i := range n {
			if at, again := names.Add(name(i), name); at != i || again {
				t.Fatalf("Add(%d) = %d, %v", i, at, again)
			}
		}
		for i := range n {
			if got := names.Lookup(name(i), name); got != i {
				t.Fatalf("n = %d: Lookup(%d) = %d", n, i, got)
			}
		}
		for _, absent := range []string{"", "x", strconv.Itoa(n), "00"} {
			if got := names.Lookup(absent, name); got != -1 {
				t.Fatalf("n = %d: Lookup(%q) = %d", n, absent, got)
			}
		}
		if cost := names.Cost(); cost > int64(24*n+64) {
			t.Errorf("n = %d: %d bytes", n, cost)
		}
	}
}

// A name that is there twice is found where it was first; later names keep their positions.
func TestNamesTwice(t *testing.T) {
	texts := []string{"a", "b", "a", "c", "a"}
	name := func(i int) string { return texts[i] }
	var names Names
	var got strings.Builder
	for _, text := range texts {
		at, again := names.Add(text, name)
		got.WriteString(fmt.Sprint(at, again, " "))
	}
	if got.String() != "0 false 1 false 0 true 3 false 0 true " {
		t.Error(got.String())
	}
	if names.Lookup("a", name) != 0 || names.Lookup("c", name) != 3 {
		t.Error("a later position replaced an earlier one")
	}
}

// Names of which the index keeps the same half of a hash are told apart. Among so many there are
// about ten such pairs.
func TestNamesThatLookAlike(t *testing.T) {
	var names Names
	for i := range 300_000 {
		if at, again := names.Add(strconv.Itoa(i), strconv.Itoa); again {
			t.Fatalf("%d is taken for %d", i, at)
		}
	}
}
