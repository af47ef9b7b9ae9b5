package listing

import (
	"fmt"
	"strconv"
	"testing"
)

func TestNames(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100, 5000} {
		name := strconv.Itoa
		names := IndexNames(n, name, func(first, i int) { t.Errorf("%d and %d are the same", first, i) })
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
	}
	var zero Names
	if zero.Lookup("x", nil) != -1 {
		t.Error("the zero index finds something")
	}
}

func TestNamesTwice(t *testing.T) {
	texts := []string{"a", "b", "a", "c", "a"}
	name := func(i int) string { return texts[i] }
	var again []string
	names := IndexNames(len(texts), name, func(first, i int) { again = append(again, fmt.Sprint(first, i)) })
	if fmt.Sprint(again) != "[0 2 0 4]" {
		t.Errorf("repeats = %v", again)
	}
	if names.Lookup("a", name) != 0 || names.Lookup("c", name) != 3 {
		t.Error("a later position replaced an earlier one")
	}
}
