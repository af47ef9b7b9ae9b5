// Package cache keeps what was fetched: a store with a bound in bytes, and one fetch for many waiters. It knows no network and
// no protocol, and judges no age: a value's owner says when it is too old.
package cache

import (
	"container/list"
	"iter"
	"sync"
)

// Store maps keys to values and forgets the least recently used ones when their costs exceed the bound. It is safe for
// concurrent use; values are shared, so they must not be changed in ways that readers can see half done.
type Store[K comparable, V any] struct {
	max  int64
	drop func(K, V)

	mu    sync.Mutex // guards all below
	items map[K]*list.Element
	order *list.List // most recently used in front
	total int64
}

type item[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

// NewStore returns an empty store that holds values up to a total cost of maxCost bytes. A value that alone costs more is not
// kept.
func NewStore[K comparable, V any](maxCost int64) *Store[K, V] {
	return &Store[K, V]{max: maxCost, items: map[K]*list.Element{}, order: list.New()}
}

// OnDrop is called for each value that the store lets go of, by Delete, for room or because it was replaced, with the store locked. Set it
// before the first use.
func (s *Store[K, V]) OnDrop(drop func(K, V)) { s.drop = drop }

// Get returns the value kept under the key and marks it as used.
func (s *Store[K, V]) Get(key K) (value V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok {
		return value, false
	}
	s.order.MoveToFront(e)
	return s.at(e).value, true
}

// Has reports whether a value is kept, without marking it as used.
func (s *Store[K, V]) Has(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.items[key]
	return ok
}

// Put keeps a value, in place of an older one of the same key.
func (s *Store[K, V]) Put(key K, value V, cost int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	if cost > s.max {
		return
	}
	s.items[key] = s.order.PushFront(&item[K, V]{key, value, cost})
	s.total += cost
	s.shrink()
}

// Grow adds to the cost of a kept value, for what was derived from it after Put. It does nothing when value is not the one
// that is kept under the key, as same tells.
func (s *Store[K, V]) Grow(key K, delta int64, same func(V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok || !same(s.at(e).value) {
		return
	}
	s.order.MoveToFront(e) // what grows is in use
	s.at(e).cost += delta
	s.total += delta
	s.shrink()
}

// All yields what is kept at the moment of the call, in no order, without marking it as used.
func (s *Store[K, V]) All() iter.Seq2[K, V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := make([]*item[K, V], 0, len(s.items))
	for _, e := range s.items {
		items = append(items, s.at(e))
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
		s.total -= it.cost
		s.order.Remove(e)
		delete(s.items, key)
		if s.drop != nil {
			s.drop(it.key, it.value)
		}
	}
}

func (s *Store[K, V]) shrink() {
	for s.total > s.max {
		s.remove(s.at(s.order.Back()).key)
	}
}
