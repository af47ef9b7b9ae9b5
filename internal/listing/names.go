package listing

import "hash/maphash"

// Names finds the position of a name among many, in 12 to 24 bytes per name; the names themselves stay with the caller. Positions are
// given in the order of adding, from 0. Once nothing is added any more it is safe for concurrent use. The zero Names is empty.
type Names struct {
	seed  maphash.Seed
	slots []uint64 // a free slot is 0; others hold half of the name's hash, and its position plus one
	n     int
}

// Add gives the next position to a name, unless an earlier one has it already: then it returns that one and again is true, and the
// position is used up all the same. name returns the name at an earlier position.
func (t *Names) Add(want string, name func(i int) string) (at int, again bool) {
	if t.n*3 >= len(t.slots)*2 {
		t.grow()
	}
	t.n++
	hash := maphash.String(t.seed, want)
	slot, at := t.find(hash, want, name)
	if at >= 0 {
		return at, true
	}
	t.slots[slot] = hash>>32<<32 | uint64(t.n)
	return t.n - 1, false
}

// Lookup returns the position of a name, or -1.
func (t *Names) Lookup(want string, name func(i int) string) int {
	if len(t.slots) == 0 {
		return -1
	}
	_, at := t.find(maphash.String(t.seed, want), want, name)
	return at
}

// Cost is the number of bytes that the index takes.
func (t *Names) Cost() int64 { return int64(cap(t.slots)) * 8 }

// find returns the position of a name, or -1 and the slot where it belongs. The names are looked at only where half of the hash
// agrees, because they are spread over the document, which is in no near cache.
func (t *Names) find(hash uint64, want string, name func(i int) string) (slot, at int) {
	mask := len(t.slots) - 1
	for slot = int(hash>>32) & mask; ; slot = (slot + 1) & mask {
		s := t.slots[slot]
		if s == 0 {
			return slot, -1
		}
		if i := int(uint32(s)) - 1; s>>32 == hash>>32 && name(i) == want {
			return slot, i
		}
	}
}

func (t *Names) grow() {
	old := t.slots
	if old == nil {
		t.seed = maphash.MakeSeed()
	}
	t.slots = make([]uint64, max(8, 2*len(old)))
	mask := len(t.slots) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		slot := int(s>>32) & mask
		for t.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		t.slots[slot] = s
	}
}
