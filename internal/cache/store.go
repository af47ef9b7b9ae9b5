// Package cache keeps what was fetched: a store with a bound in bytes, and one fetch for many
// waiters. It knows no network and no protocol, and judges no age: a value's owner says when it is
// too old.
package cache

import (
	"container/list"
	"iter"
	"sync"
)

// Store maps keys to values and evicts the least recently used ones when their costs exceed the
// bound. With a Demotion, values that were not used lately move from the hot to a cold tier first,
// where they take less memory. It is safe for concurrent use; values are shared, so they must not
// be changed in ways that readers can see half done.
type Store[K comparable, V any] struct {
	max      int64
	drop     func(K, V)
	demotion Demotion[V]

	mu       sync.Mutex // guards all below
	items    map[K]*list.Element
	hot      *list.List // most recently used in front
	cold     *list.List // each was used longer ago than all that are hot
	total    int64
	coldCost int64         // the part of total that is cold
	done     chan struct{} // closed when the goroutine that compresses ends; nil: there is none
}

type item[K comparable, V any] struct {
	key        K
	value      V
	cost       int64
	cold       bool // which list it is in
	compressed bool // by Demotion.Compress
}

// NewStore returns an empty store that holds values up to a total cost of maxCost bytes. A value
// that alone costs more is not kept.
func NewStore[K comparable, V any](maxCost int64) *Store[K, V] {
	return &Store[K, V]{max: maxCost, items: map[K]*list.Element{}, hot: list.New(), cold: list.New()}
}

// OnDrop is called for each value that leaves the store, because it was deleted, evicted or
// replaced, with the store locked. Another form of a value (Demotion) is no other value. Set it
// before the first use.
func (s *Store[K, V]) OnDrop(drop func(K, V)) { s.drop = drop }

// Get returns the value kept under the key, in the form that it has, and marks it as used.
func (s *Store[K, V]) Get(key K) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok {
		return value, false
	}
	s.use(e)
	return s.at(e).value, true
}

// Has reports whether a value is kept, without marking it as used.
func (s *Store[K, V]) Has(key K) bool {
	_, ok := s.Peek(key)
	return ok
}

// Put keeps a value, in place of an older one of the same key.
func (s *Store[K, V]) Put(key K, value V, cost int64) {
	s.Swap(key, value, cost, func(V, bool) bool { return true })
}

// Swap is Put if may allows it, which gets what is kept under the key, if anything is. It is called
// with the store locked. Swap reports whether it was allowed.
func (s *Store[K, V]) Swap(key K, value V, cost int64, may func(old V, ok bool) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old V
	e, ok := s.items[key]
	if ok {
		old = s.at(e).value
	}
	if !may(old, ok) {
		return false
	}
	s.remove(key)
	if cost <= s.max {
		s.items[key] = s.hot.PushFront(&item[K, V]{key: key, value: value, cost: cost})
		s.total += cost
		s.shrink()
	}
	return true
}

// Grow adds to the cost of a kept value, for what was derived from it after Put. It does nothing
// when value is not the one that is kept under the key, according to same.
func (s *Store[K, V]) Grow(key K, delta int64, same func(V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok || !same(s.at(e).value) {
		return
	}
	s.use(e) // what grows is in use
	s.charge(s.at(e), delta)
	s.shrink()
}

// All yields what is kept at the moment of the call, in no order, without marking it as used.
func (s *Store[K, V]) All() iter.Seq2[K, V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]item[K, V], 0, len(s.items))
	for _, e := range s.items {
		items = append(items, *s.at(e))
	}
	return func(yield func(K, V) bool) {
		for _, it := range items {
			if !yield(it.key, it.value) {
				return
			}
		}
	}
}

// Delete forgets a key.
func (s *Store[K, V]) Delete(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

// DeleteIf forgets a key while the value under it is the one that is meant, according to same. It
// reports whether it was.
func (s *Store[K, V]) DeleteIf(key K, same func(V) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok || !same(s.at(e).value) {
		return false
	}
	s.remove(key)
	return true
}

// Evict forgets the least recently used value and returns its cost; false when there is none.
func (s *Store[K, V]) Evict() (cost int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.cold.Back()
	if e == nil {
		e = s.hot.Back()
	}
	if e == nil {
		return 0, false
	}
	it := s.at(e)
	cost = it.cost
	s.remove(it.key)
	return cost, true
}

// Peek returns the value kept under the key without marking it as used.
func (s *Store[K, V]) Peek(key K) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, found := s.items[key]; found {
		value, ok = s.at(e).value, true
	}
	return value, ok
}

// Size returns the number of values kept and their total cost.
func (s *Store[K, V]) Size() (n int, cost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items), s.total
}

// at is the item of a list element; the list holds nothing else.
func (*Store[K, V]) at(e *list.Element) *item[K, V] {
	it, _ := e.Value.(*item[K, V])
	return it
}

func (s *Store[K, V]) remove(key K) {
	if e, ok := s.items[key]; ok {
		it := s.at(e)
		s.charge(it, -it.cost)
		s.list(it).Remove(e)
		delete(s.items, key)
		if s.drop != nil {
			s.drop(it.key, it.value)
		}
	}
}

// list is the one that an item is in.
func (s *Store[K, V]) list(it *item[K, V]) *list.List {
	if it.cold {
		return s.cold
	}
	return s.hot
}

// charge adds to the cost of an item.
func (s *Store[K, V]) charge(it *item[K, V], delta int64) {
	it.cost += delta
	s.total += delta
	if it.cold {
		s.coldCost += delta
	}
}

// use marks an item as used. One that is cold and not compressed becomes hot.
func (s *Store[K, V]) use(e *list.Element) {
	it := s.at(e)
	if it.cold && !it.compressed {
		s.move(e, false)
		return
	}
	s.list(it).MoveToFront(e)
}

// move puts an item in front of a list.
func (s *Store[K, V]) move(e *list.Element, cold bool) {
	it := s.at(e)
	cost := it.cost
	s.charge(it, -cost)
	s.list(it).Remove(e)
	it.cold = cold
	s.items[it.key] = s.list(it).PushFront(it)
	s.charge(it, cost)
}

// shrink evicts until the bound is kept, and starts demoting when it is near.
func (s *Store[K, V]) shrink() {
	if s.total > s.max {
		s.trim(s.max)
	}
	for s.coldCost > s.max/coldShare {
		s.remove(s.at(s.cold.Back()).key)
	}
	for s.total > s.max {
		e := s.cold.Back()
		if e == nil {
			e = s.hot.Back()
		}
		if !s.trimmed(s.at(e)) {
			s.remove(s.at(e).key)
		}
	}
	s.startDemoting()
}
