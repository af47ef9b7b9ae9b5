package listing

import "hash/maphash"

// Names finds the position of a name among many, in about eight bytes per name. The names themselves stay with the caller. It
// is immutable once built and safe for concurrent use.
type Names struct {
	seed  maphash.Seed
	slots []uint32 // position plus one; 0 is free
}

// IndexNames builds the index of n names. For each name that an earlier position holds already, again is called with both
// positions, and the earlier one stays.
func IndexNames(n int, name func(i int) string, again func(first, i int)) Names {
	size := 2
	for size < n*3/2 {
		size *= 2
	}
	t := Names{seed: maphash.MakeSeed(), slots: make([]uint32, size)}
	for i := range n {
		slot, at := t.find(name(i), name)
		if at >= 0 {
			again(at, i)
			continue
		}
		t.slots[slot] = uint32(i) + 1
	}
	return t
}

// Lookup returns the position of a name, or -1; name is the function that the index was built with.
func (t Names) Lookup(want string, name func(i int) string) int {
	if len(t.slots) == 0 {
		return -1
	}
	_, at := t.find(want, name)
	return at
}

// Cost is the number of bytes that the index takes.
func (t Names) Cost() int64 { return int64(len(t.slots)) * 4 }

func (t Names) find(want string, name func(i int) string) (slot, at int) {
	mask := len(t.slots) - 1
	for slot = int(maphash.String(t.seed, want)) & mask; ; slot = (slot + 1) & mask {
		i := int(t.slots[slot]) - 1
		if i < 0 || name(i) == want {
			return slot, i
		}
	}
}
