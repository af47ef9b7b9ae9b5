package cache

import (
	"testing"
)

func TestStoreForgetsTheLeastUsed(t *testing.T) {
	s := NewStore[string, int](10)
	s.Put("a", 1, 4)
	s.Put("b", 2, 4)
	s.Get("a")
	s.Put("c", 3, 4)
	if _, ok := s.Get("b"); ok {
		t.Error("b is kept although it was used least")
	}
	if v, ok := s.Get("a"); !ok || v != 1 {
		t.Error("a is lost although it was used")
	}
	s.Put("huge", 4, 11)
	if n, cost := s.Size(); n != 2 || cost != 8 {
		t.Errorf("after an oversized value: %d values, cost %d", n, cost)
	}
	s.Grow("c", 5, func(v int) bool { return v == 3 })
	if n, cost := s.Size(); n != 1 || cost != 9 {
		t.Errorf("after growth: %d values, cost %d", n, cost)
	}
	s.Grow("c", 5, func(v int) bool { return v == 99 })
	s.Put("c", 5, 2)
	s.Delete("absent")
	if v, _ := s.Get("c"); v != 5 {
		t.Errorf("c = %d", v)
	}
	if _, cost := s.Size(); cost != 2 {
		t.Errorf("cost = %d after replacement", cost)
	}
}

// A replaced value that alone is too large must not leave the old one behind.
func TestStoreDropsTheOldValueOfAnOversizedOne(t *testing.T) {
	s := NewStore[string, int](10)
	s.Put("a", 1, 4)
	s.Put("a", 2, 40)
	if v, ok := s.Get("a"); ok {
		t.Errorf("a = %d", v)
	}
}
