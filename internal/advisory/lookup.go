package advisory

import (
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// maxMemo bounds the versions whose answer is kept for one package. What comes later is worked out
// each time.
const maxMemo = 1024

// index is the data of one ecosystem in memory. Packages are made ready when they are first asked
// about.
type index struct {
	ecosystem registry.Ecosystem
	packages  map[string]*entry
	info      Info
	number    int64     // of the database that it was read from
	confirmed time.Time // when the source last said this, as the folder has it
}

type entry struct {
	facts []fact

	once     sync.Once // guards the making of the two below, and frees facts
	compiled *compiled
	err      error
}

func (x *index) lookup(name, version string) ([]registry.Advisory, error) {
	c, err := x.compiled(name)
	if c == nil || err != nil {
		return nil, err
	}
	return c.lookup(version), nil
}

// compiled makes a package ready, once; nil means that nothing is known of it.
func (x *index) compiled(name string) (*compiled, error) {
	e, ok := x.packages[name]
	if !ok {
		return nil, nil
	}
	e.once.Do(func() {
		e.compiled, e.err = compilePackage(x.ecosystem, e.facts)
		e.facts = nil
	})
	return e.compiled, e.err
}

func (c *compiled) lookup(version string) []registry.Advisory {
	c.mu.RLock()
	out, ok := c.memo[version]
	c.mu.RUnlock()
	if ok {
		return out
	}
	out = c.find(version)
	c.mu.Lock()
	if len(c.memo) < maxMemo && len(version) <= osv.MaxText {
		c.memo[strings.Clone(version)] = out // it may be a part of a whole document
	}
	c.mu.Unlock()
	return out
}

// find works an answer out. A version that cannot be ordered is affected by all that affects some
// range of the package.
func (c *compiled) find(version string) []registry.Advisory {
	hits := map[int32]registry.Advisory{}
	hit := func(finding int32) registry.Advisory {
		a, ok := hits[finding]
		if !ok {
			a = c.findings[finding]
		}
		return a
	}
	for _, finding := range c.literal[version] {
		a := hit(finding)
		a.Affects = true
		hits[finding] = a
	}
	place, known := c.place(version)
	endings := map[int32]int32{}
	for _, s := range c.spans {
		if known && (place < s.lo || place > s.hi) {
			continue
		}
		a := hit(s.finding)
		a.Affects = true
		if end, ok := endings[s.finding]; s.fixed >= 0 && (!ok || end < s.fixed) {
			endings[s.finding], a.FixedIn = s.fixed, c.texts[s.fixed]
		}
		hits[s.finding] = a
	}
	for _, s := range c.fixes {
		if known && place == s.lo {
			a := hit(s.finding)
			a.Fixes = true
			hits[s.finding] = a
		}
	}
	if len(hits) == 0 {
		return nil
	}
	out := make([]registry.Advisory, 0, len(hits))
	for finding := range c.findings { // in one order, whatever the map does
		if a, ok := hits[int32(finding)]; ok {
			out = append(out, a)
		}
	}
	return out
}

// place finds a version among the bounds; false if it has no order.
func (c *compiled) place(version string) (int32, bool) {
	if at, ok := c.known[version]; ok {
		return at, true
	}
	v, err := c.parse(version)
	if err != nil {
		return 0, false
	}
	i, equal := sort.Find(len(c.bounds), func(i int) int { return v.Compare(c.bounds[i]) })
	if equal {
		return int32(2*i + 1), true
	}
	return int32(2 * i), true
}

// Data is a snapshot of the advisory data of all ecosystems. It never changes and is safe for
// concurrent use; the zero Data has nothing loaded.
type Data struct{ indexes map[string]*index }

// Loaded reports whether there is data for an ecosystem.
func (d *Data) Loaded(ecosystem string) bool { return d != nil && d.indexes[ecosystem] != nil }

// Lookup returns the advisories that affect a version of a package, and those that name it as their
// fix. The slice is shared and must not be changed. An error means that what is stored about the
// package cannot be read; for an ecosystem without data there is nothing.
func (d *Data) Lookup(p registry.Package, version string) ([]registry.Advisory, error) {
	if !d.Loaded(p.Ecosystem) {
		return nil, nil
	}
	return d.indexes[p.Ecosystem].lookup(p.Name, version)
}
