package cooldown_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// memoryStore is a Store in one process, with a clock of its own.
type memoryStore struct {
	mu     sync.Mutex
	now    time.Time // the server's clock: far from everybody else's
	keys   map[cooldown.Authority]*memoryKey
	down   error
	writes int
	calls  int
}

type memoryKey struct {
	generation uint64
	cooling    bool
	deadline   time.Time
	ceiling    time.Duration
	token      string
	leaseUntil time.Time
}

func newMemoryStore() *memoryStore {
	return &memoryStore{now: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), keys: map[cooldown.Authority]*memoryKey{}}
}

func (m *memoryStore) pass(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(by)
}

// lock begins a call; it returns the key, which may be nil, and whether the store is down.
func (m *memoryStore) lock(a cooldown.Authority) (*memoryKey, error) {
	m.mu.Lock()
	m.calls++
	return m.keys[a], m.down
}

func (m *memoryStore) change(a cooldown.Authority, k *memoryKey) *memoryKey {
	if k == nil {
		k = &memoryKey{}
		m.keys[a] = k
	}
	m.writes++
	k.generation = max(k.generation+1, uint64(m.now.UnixMicro()))
	return k
}

func (m *memoryStore) shared(k *memoryKey, token string) cooldown.Shared {
	if k == nil {
		return cooldown.Shared{}
	}
	s := cooldown.Shared{Generation: k.generation, Cooling: k.cooling}
	if k.cooling {
		s.Remaining, s.Ceiling = max(0, k.deadline.Sub(m.now)), k.ceiling
		if k.token != "" && k.token != token {
			s.Probing = max(0, k.leaseUntil.Sub(m.now))
		}
	}
	return s
}

func (m *memoryStore) Load(_ context.Context, a cooldown.Authority) (cooldown.Shared, error) {
	k, err := m.lock(a)
	defer m.mu.Unlock()
	if err != nil {
		return cooldown.Shared{}, err
	}
	return m.shared(k, ""), nil
}

func (m *memoryStore) Throttled(_ context.Context, a cooldown.Authority, r cooldown.ThrottleRecord) (cooldown.Shared, error) {
	k, err := m.lock(a)
	defer m.mu.Unlock()
	if err != nil {
		return cooldown.Shared{}, err
	}
	k = m.change(a, k)
	if until := m.now.Add(r.Delay); !k.cooling || until.After(k.deadline) {
		k.deadline = until
	}
	if !k.cooling {
		k.ceiling = 0
	}
	k.cooling, k.ceiling = true, max(k.ceiling, r.Ceiling)
	if r.Token != "" && r.Token == k.token {
		k.token = ""
	}
	return m.shared(k, r.Token), nil
}

func (m *memoryStore) Acquire(_ context.Context, a cooldown.Authority, l cooldown.Lease) (cooldown.Shared, bool, error) {
	k, err := m.lock(a)
	defer m.mu.Unlock()
	switch {
	case err != nil:
		return cooldown.Shared{}, false, err
	case k != nil && !k.cooling && l.Seen != 0 && k.generation > l.Seen,
		k != nil && k.cooling && (m.now.Before(k.deadline) || k.token != "" && m.now.Before(k.leaseUntil)):
		return m.shared(k, l.Token), false, nil
	}
	k = m.change(a, k)
	if !k.cooling {
		k.cooling, k.deadline, k.ceiling = true, m.now, cooldown.Fallback
	}
	k.token, k.leaseUntil = l.Token, m.now.Add(l.Duration)
	return m.shared(k, l.Token), true, nil
}

func (m *memoryStore) Settle(_ context.Context, a cooldown.Authority, token string, recovered bool) (cooldown.Shared, error) {
	k, err := m.lock(a)
	defer m.mu.Unlock()
	if err != nil {
		return cooldown.Shared{}, err
	}
	if k != nil && k.token == token {
		k = m.change(a, k)
		k.token, k.cooling = "", !recovered
	}
	return m.shared(k, token), nil
}

// fleet is two processes with one store. Their clocks have nothing in common.
type fleet struct {
	*memoryStore
	one, two *desk
	heard    []cooldown.Transition // through OnShared of two
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{memoryStore: newMemoryStore()}
	f.one = newDesk(t, cooldown.Options{Store: f})
	f.two = newDesk(t, cooldown.Options{Store: f, OnShared: func(tr cooldown.Transition) { f.heard = append(f.heard, tr) }})
	f.two.now = f.two.now.Add(77 * time.Hour)
	return f
}

// pass lets time go by for everybody.
func (f *fleet) pass(by time.Duration) {
	f.memoryStore.pass(by)
	f.one.pass(by)
	f.two.pass(by)
}

// push brings the present state to process two, as a subscription would.
func (f *fleet) push(t *testing.T) {
	t.Helper()
	news, err := f.Load(context.Background(), f.two.a)
	if err != nil {
		t.Fatal(err)
	}
	f.two.table.Observe(f.two.now, f.two.a, news)
}

func (f *fleet) setDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}
