package cache

// Demotion says how values that were not used lately are held in less memory. Both functions leave
// the value as it is and return its replacement, with its cost; false means that nothing is gained.
type Demotion[V any] struct {
	// Trim leaves out what was derived from a value and can be derived again. It is called with the
	// store locked, so it must be quick and must not call the store.
	Trim func(V) (V, int64, bool)
	// Compress returns a form that must be decompressed before use, which is up to the callers of
	// Get. It is called by one goroutine at a time, without the lock.
	Compress func(V) (V, int64, bool)
}

// Marks of a store with a Demotion. It begins before the store is full, so that nothing must be
// evicted meanwhile.
const (
	demoteAbove = 7 // eighths of the bound, above which demotion begins
	demoteUntil = 6 // eighths of the bound, where it ends
	coldShare   = 2 // the part of the bound that the cold tier may take: one half
)

// Demote sets how values are held in less memory. Call it before the first use.
//
// When memory is short, the less recently used half of the hot tier is trimmed first, as far as
// needed; then the least recently used values are compressed and move to the cold tier; and when
// that is not enough, or not quick enough, values are evicted. A value that is used again is
// compressed again only once it is the least recently used.
func (s *Store[K, V]) Demote(d Demotion[V]) { s.demotion = d }

// Cold returns the number of values in the cold tier, and their cost, which is part of that of
// Size.
func (s *Store[K, V]) Cold() (n int, cost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cold.Len(), s.coldCost
}

// Wait returns when nothing is being compressed.
func (s *Store[K, V]) Wait() {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// trim trims the less recently used half of the hot tier until the target is reached.
func (s *Store[K, V]) trim(target int64) {
	e := s.hot.Back()
	for range s.hot.Len() / 2 {
		if s.total <= target {
			return
		}
		s.trimmed(s.at(e))
		e = e.Prev()
	}
}

// trimmed trims one value and reports whether that freed memory.
func (s *Store[K, V]) trimmed(it *item[K, V]) bool {
	if s.demotion.Trim == nil || it.compressed {
		return false
	}
	value, cost, ok := s.demotion.Trim(it.value)
	if !ok || cost >= it.cost {
		return false
	}
	it.value = value
	s.charge(it, cost-it.cost)
	return true
}

// startDemoting starts the goroutine that compresses, when there is something for it to do. There
// is at most one, and no queue for it: the order of use is its queue.
func (s *Store[K, V]) startDemoting() {
	if s.demotion.Compress == nil || s.done != nil || s.total <= s.max/8*demoteAbove || s.hot.Len() < 2 {
		return
	}
	s.done = make(chan struct{})
	go s.demote(s.done)
}

func (s *Store[K, V]) demote(done chan struct{}) {
	defer close(done)
	for {
		it, value := s.next()
		if it == nil {
			return
		}
		compressed, cost, ok := s.demotion.Compress(value)
		s.settle(it, compressed, cost, ok)
	}
}

// next returns the value to compress next, or ends the work. The most recently used one is never
// compressed: it is in use, however large.
func (s *Store[K, V]) next() (it *item[K, V], value V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	enough := s.max / 8 * demoteUntil
	s.trim(enough)
	if s.total <= enough || s.hot.Len() < 2 {
		s.done = nil
		return nil, value
	}
	it = s.at(s.hot.Back())
	return it, it.value
}

// settle stores a compressed value, unless the item was used, replaced or evicted meanwhile.
func (s *Store[K, V]) settle(it *item[K, V], compressed V, cost int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.hot.Back()
	if e == nil || s.at(e) != it {
		return
	}
	s.trimmed(it)
	if ok && cost < it.cost {
		it.value, it.compressed = compressed, true
		s.charge(it, cost-it.cost)
	}
	s.move(e, true)
	s.shrink()
}
