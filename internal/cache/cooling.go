package cache

// Cooling says how values that were not used lately are kept in less room. Both functions leave the value as it is and return what is kept
// in its place, with its cost; false means that there is nothing to gain.
type Cooling[V any] struct {
	// Trim leaves out what was derived from a value and can be made again. It is called with the store locked, so it must be quick and
	// must not call the store.
	Trim func(V) (V, int64, bool)
	// Pack makes a form that is to be unpacked before use, which is up to those who get it. It is called by one goroutine at a time,
	// without the lock.
	Pack func(V) (V, int64, bool)
}

// Marks of a store that cools. Packing begins before the store is full, so that nothing has to be dropped while it goes on.
const (
	startCooling = 7 // eighths of the bound, above which packing begins
	stopCooling  = 6 // eighths of the bound, where it is enough
	coldShare    = 2 // the part of the bound that cold values may take: one half. The rest is for those in use.
)

// Cool sets how values are kept in less room. Call it before the first use.
//
// When room is short, the colder half of the values in use is trimmed first, as far as it is needed; then the least recently used are
// packed; and when that is not enough, or not quick enough, they are dropped. The order of use decides each time. A value that is used
// is not packed again before it is the least recently used of all once more.
func (s *Store[K, V]) Cool(c Cooling[V]) { s.cooling = c }

// Cold returns the number of values that are kept in as little room as they can be, and their cost, which is part of that of Size.
func (s *Store[K, V]) Cold() (n int, cost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cold.Len(), s.chill
}

// Wait returns when nothing is being packed.
func (s *Store[K, V]) Wait() {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// trim trims the colder half of the warm values until the target is reached.
func (s *Store[K, V]) trim(target int64) {
	e := s.warm.Back()
	for range s.warm.Len() / 2 {
		if s.total <= target {
			return
		}
		s.trimmed(s.at(e))
		e = e.Prev()
	}
}

// trimmed trims one value and reports whether that made room.
func (s *Store[K, V]) trimmed(it *item[K, V]) bool {
	if s.cooling.Trim == nil || it.packed {
		return false
	}
	value, cost, ok := s.cooling.Trim(it.value)
	if !ok || cost >= it.cost {
		return false
	}
	it.value = value
	s.charge(it, cost-it.cost)
	return true
}

// chillOff starts the goroutine that packs, when there is something for it to do. There is one at most, and no queue for it: the order of
// use is its queue.
func (s *Store[K, V]) chillOff() {
	if s.cooling.Pack == nil || s.done != nil || s.total <= s.max/8*startCooling || s.warm.Len() < 2 {
		return
	}
	s.done = make(chan struct{})
	go s.cool(s.done)
}

func (s *Store[K, V]) cool(done chan struct{}) {
	defer close(done)
	for {
		it, value := s.next()
		if it == nil {
			return
		}
		packed, cost, ok := s.cooling.Pack(value)
		s.settle(it, packed, cost, ok)
	}
}

// next gives the value to be packed next, or ends the work. The one that was used last is never packed: it is in use, however large.
func (s *Store[K, V]) next() (it *item[K, V], value V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	enough := s.max / 8 * stopCooling
	s.trim(enough)
	if s.total <= enough || s.warm.Len() < 2 {
		s.done = nil
		return nil, value
	}
	it = s.at(s.warm.Back())
	return it, it.value
}

// settle takes over a packed value, unless the item was used, replaced or dropped meanwhile.
func (s *Store[K, V]) settle(it *item[K, V], packed V, cost int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.warm.Back()
	if e == nil || s.at(e) != it {
		return
	}
	s.trimmed(it)
	if ok && cost < it.cost {
		it.value, it.packed = packed, true
		s.charge(it, cost-it.cost)
	}
	s.move(e, true)
	s.shrink()
}
