package cooldown

import (
	"iter"
	"maps"
	"slices"
)

// view is all states at one moment. It is never changed: with and without make a new one. It is
// keyed by host alone because a look-up by string is much cheaper than one by a struct, and hardly
// any host has more than one port.
type view struct {
	hosts map[string][]portState
	size  int
}

type portState struct {
	port  uint16
	state *state
}

// get returns the authority's state, or nil.
func (v *view) get(a Authority) *state {
	for _, p := range v.hosts[a.Host] {
		if p.port == a.Port {
			return p.state
		}
	}
	return nil
}

// with is v with this state for the authority.
func (v *view) with(a Authority, s *state) *view {
	next := v.without(a)
	next.hosts[a.Host] = append(next.hosts[a.Host], portState{a.Port, s})
	next.size++
	return next
}

// without is v without the authority. Its slices are its own as far as with appends to them.
func (v *view) without(a Authority) *view {
	next := &view{hosts: maps.Clone(v.hosts), size: v.size}
	ports := slices.DeleteFunc(slices.Clone(v.hosts[a.Host]), func(p portState) bool { return p.port == a.Port })
	next.size -= len(v.hosts[a.Host]) - len(ports)
	if next.hosts[a.Host] = ports; len(ports) == 0 {
		delete(next.hosts, a.Host)
	}
	return next
}

// all yields every authority and its state, in no order.
func (v *view) all() iter.Seq2[Authority, *state] {
	return func(yield func(Authority, *state) bool) {
		for host, ports := range v.hosts {
			for _, p := range ports {
				if !yield(Authority{host, p.port}, p.state) {
					return
				}
			}
		}
	}
}
