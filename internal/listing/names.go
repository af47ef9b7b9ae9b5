package listing

import "hash/maphash"

// Names finds the position of a name among many, in 12 to 24 bytes per name; the names themselves
// stay with the caller. Positions are given in the order of adding, from 0. Once nothing is added
// any more it is safe for concurrent use. The zero Names is empty.
type Names struct {
	// a free slot is 0; others hold half of the name's hash, and its position plus one
	slots []uint64
	n     int
}

// seed is another one in each process, so that nobody can send names that all hash alike.
var seed = maphash.MakeSeed()

// Hash is what [Names] goes by. It is taken best when the name is at hand anyway.
func Hash(name string) uint64 { return maphash.String(seed, name) }

// Grow makes room for n names in all.
func (t *Names) Grow(n int) {
	size := max(8, len(t.slots))
	for n*3 > size*2 {
		size *= 2
	}
	if size > len(t.slots) {
		t.resize(size)
	}
}

// Add gives the next position to a name, unless an earlier one has it already: then it returns that
// one and again is true, and the position is used up all the same. name returns the name at an
// earlier position.
func (t *Names) Add(want string, name func(i int) string) (at int, again bool) {
	return t.add(Hash(want), func(i int) bool { return name(i) == want })
}

// AddHash is Add for a name of which the hash was taken before. name returns also the name at the
// next position, and is mostly not called at all.
func (t *Names) AddHash(hash uint64, name func(i int) string) (at int, again bool) {
	next := t.n
	return t.add(hash, func(i int) bool { return name(i) == name(next) })
}

func (t *Names) add(hash uint64, same func(i int) bool) (at int, again bool) {
	t.Grow(t.n + 1)
	t.n++
	slot, at := t.find(hash, same)
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
	_, at := t.find(Hash(want), func(i int) bool { return name(i) == want })
	return at
}

// Cost is the number of bytes that the index takes.
func (t *Names) Cost() int64 { return int64(cap(t.slots)) * 8 }

// find returns the position of a name, or -1 and the slot where it belongs. The names are looked at
// only where half of the hash agrees, because they are spread over the document, which is in no
// near cache.
func (t *Names) find(hash uint64, same func(i int) bool) (slot, at int) {
	mask := len(t.slots) - 1
	for slot = int(hash>>32) & mask; ; slot = (slot + 1) & mask {
		s := t.slots[slot]
		if s == 0 {
			return slot, -1
		}
		if i := int(uint32(s)) - 1; s>>32 == hash>>32 && same(i) {
			return slot, i
		}
	}
}

func (t *Names) resize(size int) {
	old := t.slots
	t.slots = make([]uint64, size)
	for _, s := range old {
		if s == 0 {
			continue
		}
		slot := int(s>>32) & (size - 1)
		for t.slots[slot] != 0 {
			slot = (slot + 1) & (size - 1)
		}
		t.slots[slot] = s
	}
}
