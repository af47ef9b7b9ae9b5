package advisory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// compiled is all that the data says about one package, ready to be asked about versions. All
// distinct bounds stand in one ascending list; a version has a place in it, and what affects a
// place is found by comparing small numbers. The place of the i-th bound itself is 2i+1, what lies
// between the bounds before and after it is even.
type compiled struct {
	ecosystem registry.Ecosystem
	bounds    []registry.Comparable
	texts     []string           // bounds as they were written
	known     map[string]int32   // places of versions by their spelling
	literal   map[string][]int32 // findings of listed versions that have no order
	spans     []span
	fixes     []span // lo and hi are the place of the fix
	findings  []registry.Advisory

	mu   sync.RWMutex // guards memo
	memo map[string][]registry.Advisory
}

// span is a range of places that a finding affects, both ends included.
type span struct {
	finding int32
	lo, hi  int32
	fixed   int32 // index of the bound that ends it, or -1
}

// Places outside the bounds.
const (
	first = int32(0)
	last  = int32(math.MaxInt32)
)

// fact is one stored row: a record, as far as it is about one package.
type fact struct {
	advisory *storedAdvisory
	extent   string // JSON of osv.Extent
}

// storedAdvisory is one record.
type storedAdvisory struct {
	id      string
	aliases string // JSON list
	malware bool
	scored  bool
	score   float64
}

// compilePackage makes a package's facts ready. An error means that the stored data is broken.
func compilePackage(ecosystem registry.Ecosystem, facts []fact) (*compiled, error) {
	c := &compiled{ecosystem: ecosystem, known: map[string]int32{}, literal: map[string][]int32{}, memo: map[string][]registry.Advisory{}}
	extents := make([]osv.Extent, len(facts))
	for i, f := range facts {
		if err := json.Unmarshal([]byte(f.extent), &extents[i]); err != nil {
			return nil, fmt.Errorf("%s: unreadable version ranges: %v", f.advisory.id, err)
		}
	}
	owner, err := c.group(facts)
	if err != nil {
		return nil, err
	}
	c.order(extents)
	for i := range extents {
		c.add(owner[i], &extents[i])
	}
	return c, nil
}

// group makes one finding of the records that name each other as aliases, and returns whose finding
// each fact is.
func (c *compiled) group(facts []fact) ([]int32, error) {
	byID := map[string]int32{} // finding by identifier
	owner := make([]int32, len(facts))
	names := make([][]string, 0, len(facts))
	for i, f := range facts {
		var ids []string
		if err := json.Unmarshal([]byte(f.advisory.aliases), &ids); err != nil {
			return nil, fmt.Errorf("%s: unreadable aliases: %v", f.advisory.id, err)
		}
		names = append(names, append(ids, f.advisory.id))
		owner[i] = int32(i)
	}
	for again := true; again; { // until nothing joins any more
		again = false
		for i := range facts {
			for _, id := range names[i] {
				other, ok := byID[id]
				switch {
				case !ok || other > owner[i]:
					byID[id], again = owner[i], true
				case other < owner[i]:
					owner[i], again = other, true
				}
			}
		}
	}
	index := map[int32]int32{}
	members := [][]int{}
	for i := range facts {
		n, ok := index[owner[i]]
		if !ok {
			n = int32(len(members))
			index[owner[i]] = n
			members = append(members, nil)
		}
		owner[i], members[n] = n, append(members[n], i)
	}
	for _, m := range members {
		c.findings = append(c.findings, merge(facts, names, m))
	}
	return owner, nil
}

// merge describes one finding by its records: the worst names it.
func merge(facts []fact, names [][]string, members []int) registry.Advisory {
	worst := slices.MinFunc(members, func(a, b int) int {
		x, y := facts[a].advisory, facts[b].advisory
		return cmp.Or(-compareBool(strings.HasPrefix(x.id, "MAL-"), strings.HasPrefix(y.id, "MAL-")), -compareBool(x.scored, y.scored),
			cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id))
	})
	out := registry.Advisory{ID: facts[worst].advisory.id}
	for _, i := range members {
		a := facts[i].advisory
		out.Malware = out.Malware || a.malware
		if a.scored {
			out.Scored, out.Score = true, max(out.Score, a.score)
		}
		out.Aliases = append(out.Aliases, names[i]...)
	}
	slices.Sort(out.Aliases)
	out.Aliases = slices.Compact(out.Aliases)
	out.Aliases = slices.DeleteFunc(out.Aliases, func(id string) bool { return id == out.ID })
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// parse reads a version of the package's ecosystem.
func (c *compiled) parse(text string) (registry.Comparable, error) {
	if len(text) > osv.MaxText {
		return nil, errors.New("version too long")
	}
	return c.ecosystem.ParseVersion(text)
}

// order builds the list of bounds.
func (c *compiled) order(extents []osv.Extent) {
	type bound struct {
		version registry.Comparable
		text    string
	}
	var all []bound
	seen := map[string]bool{}
	take := func(text string) {
		if seen[text] {
			return
		}
		seen[text] = true
		if v, err := c.parse(text); err == nil {
			all = append(all, bound{v, text})
		}
	}
	for _, e := range extents {
		for _, r := range e.Ranges {
			for _, ev := range r {
				take(ev[1])
			}
		}
		for _, v := range e.Versions {
			take(v)
		}
	}
	slices.SortStableFunc(all, func(a, b bound) int { return a.version.Compare(b.version) })
	for i, b := range all {
		if i == 0 || all[i-1].version.Compare(b.version) != 0 {
			c.bounds, c.texts = append(c.bounds, b.version), append(c.texts, b.text)
		}
		c.known[b.text] = int32(2*len(c.bounds) - 1)
	}
}

// add puts one extent's spans and fixes under a finding.
func (c *compiled) add(finding int32, e *osv.Extent) {
	if e.All {
		c.spans = append(c.spans, span{finding, first, last, -1})
	}
	for _, text := range e.Versions {
		if at, ok := c.known[text]; ok {
			c.spans = append(c.spans, span{finding, at, at, -1})
		} else {
			c.literal[text] = append(c.literal[text], finding)
		}
	}
	for _, r := range e.Ranges {
		c.addRange(finding, r)
	}
}
