package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// thing is a value in one of its forms.
type thing struct {
	name        string
	generation  int
	body, extra int64
	compressed  bool
}

func (v thing) cost() int64 {
	if v.compressed {
		return v.body / 10
	}
	return v.body + v.extra
}

// demoted is a store whose compressing takes a while of virtual time; it notes the order of
// compressing, and whether two went on at once.
type demoted struct {
	*Store[string, thing]
	mu      sync.Mutex
	order   []string
	running int
	hold    time.Duration
}

func newDemoted(t *testing.T, max int64, small int64) *demoted {
	c := &demoted{Store: NewStore[string, thing](max), hold: time.Second}
	t.Cleanup(c.Wait) // the bubble must not end before what is being compressed
	c.Demote(Demotion[thing]{
		Trim: func(v thing) (thing, int64, bool) {
			v.extra = 0
			return v, v.cost(), true
		},
		Compress: func(v thing) (thing, int64, bool) {
			c.mu.Lock()
			if c.running++; c.running > 1 {
				t.Error("two are compressed at once")
			}
			c.order = append(c.order, v.name)
			c.mu.Unlock()
			time.Sleep(c.hold)
			c.mu.Lock()
			c.running--
			c.mu.Unlock()
			v.compressed, v.extra = true, 0
			return v, v.cost(), v.body >= small
		},
	})
	return c
}

func (c *demoted) put(v thing) { c.Put(v.name, v, v.cost()) }

func (c *demoted) form(name string) string {
	for k, v := range c.All() {
		switch {
		case k != name:
		case v.compressed:
			return "compressed"
		case v.extra > 0:
			return "whole"
		default:
			return "trimmed"
		}
	}
	return "gone"
}

func (c *demoted) want(t *testing.T, forms string, names ...string) {
	t.Helper()
	var got strings.Builder
	for _, n := range names {
		got.WriteString(c.form(n) + " ")
	}
	if got.String() != forms+" " {
		t.Errorf("%v are %s, want %s", names, got.String(), forms)
	}
}

// What was used longest ago loses first what can be made again, then its room, and goes at last;
// what is in use stays whole.
func TestStoreCoolsByUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newDemoted(t, 1000, 0)
		for i := range 5 {
			c.put(thing{name: fmt.Sprint(i), body: 100, extra: 80})
		}
		synctest.Wait() // 900: more than seven eighths. Trimming two is enough to begin with.
		c.want(t, "trimmed trimmed whole whole whole", "0", "1", "2", "3", "4")
		c.Get("0")
		// 920: three of the colder half are trimmed, then the coldest is compressed
		c.put(thing{name: "5", body: 100, extra: 80})
		synctest.Wait()
		time.Sleep(time.Minute)
		c.want(t, "trimmed compressed trimmed trimmed whole whole", "0", "1", "2", "3", "4", "5")
		for i := range 100 {
			c.put(thing{name: fmt.Sprint("n", i), body: 100, extra: 80})
			time.Sleep(time.Minute)
			if i == 20 {
				c.want(t, "compressed whole whole", "4", "n19", "n20")
			}
		}
		n, cost := c.Cold()
		if all, total := c.Size(); n < 40 || all-n < 1 || cost > 500 || total > 1000 {
			t.Errorf("%d of %d are cold, %d of %d bytes", n, all, cost, total)
		}
		c.want(t, "gone compressed", "4", "n90")
		for i := range c.order[:len(c.order)-1] {
			if i > 0 && c.order[i] == c.order[i-1] {
				t.Errorf("%s is compressed twice in a row", c.order[i])
			}
		}
	})
}

// The bound holds at every moment, whatever happens in whatever order, and what the store says of
// itself is the sum of what it holds. When all is over no goroutine is left (the bubble would say
// so).
func TestStoreBoundHoldsWhileDemoting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 10_000
		c := newDemoted(t, most, 200)
		c.hold = time.Millisecond
		var wg sync.WaitGroup
		for seed := range uint64(8) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, 1))
				for range 3000 {
					name := fmt.Sprint(r.IntN(200))
					switch r.IntN(6) {
					case 0, 1:
						c.put(thing{name: name, body: r.Int64N(1000), extra: r.Int64N(500)})
					case 2:
						c.Delete(name)
					case 3:
						c.Grow(name, 50, func(v thing) bool { return !v.compressed })
					default:
						c.Get(name)
					}
					if _, cost := c.Size(); cost > most {
						t.Errorf("%d bytes", cost)
					}
					time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
				}
			})
		}
		wg.Wait()
		c.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.order) < 100 {
			t.Errorf("only %d were compressed", len(c.order))
		}
		sum, coldCost := int64(0), int64(0)
		for _, e := range c.items {
			sum += c.at(e).cost
			if c.at(e).cold {
				coldCost += c.at(e).cost
			}
		}
		if sum != c.total || coldCost != c.coldCost || len(c.items) != c.hot.Len()+c.cold.Len() {
			t.Errorf("sum %d, total %d; cold %d, said %d; %d items in lists of %d and %d", sum, c.total, coldCost, c.coldCost, len(c.items), c.hot.Len(), c.cold.Len())
		}
	})
}

// What happens to a value while it is compressed wins over the compressed one: a newer value, its
// use, and its end.
func TestStorePackedValueNeverReplacesANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*demoted)
		want      string
	}{
		"replaced": {func(c *demoted) { c.put(thing{name: "old", generation: 2, body: 300}) }, "trimmed"},
		"used":     {func(c *demoted) { c.Get("old") }, "trimmed"},
		"deleted":  {func(c *demoted) { c.Delete("old") }, "gone"},
		"nothing":  {func(*demoted) {}, "compressed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newDemoted(t, 1000, 0)
				s.put(thing{name: "old", body: 300})
				s.put(thing{name: "new", body: 300})
				s.put(thing{name: "newest", body: 300})
				synctest.Wait() // "old" is being compressed
				if len(s.order) != 1 || s.order[0] != "old" {
					t.Fatalf("compressed: %v", s.order)
				}
				c.meanwhile(s)
				time.Sleep(time.Hour)
				s.want(t, c.want, "old")
				if v, ok := s.Get("old"); ok && name == "replaced" && v.generation != 2 {
					t.Error("the older one is back")
				}
			})
		})
	}
}

// A compressed value that is used is compressed until its user puts the decompressed one in its
// place, and only in that one's place.
func TestStorePromotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDemoted(t, 1000, 0)
		for _, name := range []string{"a", "b", "c"} {
			s.put(thing{name: name, body: 300})
		}
		time.Sleep(time.Hour)
		compressed, _ := s.Get("a")
		if !compressed.compressed {
			t.Fatal("a is not compressed")
		}
		raw := compressed
		raw.compressed = false
		same := func(old thing, ok bool) bool { return ok && old == compressed }
		if !s.Swap("a", raw, raw.cost(), same) || s.form("a") != "trimmed" {
			t.Error("a is not decompressed")
		}
		if _, cost := s.Size(); cost > 1000 {
			t.Errorf("%d bytes", cost)
		}
		if s.Swap("a", compressed, compressed.cost(), same) {
			t.Error("what was compressed long ago takes the place of what is in use")
		}
		s.Delete("a")
		if s.Swap("a", raw, raw.cost(), same) || s.form("a") != "gone" {
			t.Error("what was deleted is back")
		}
	})
}

// What is too small to be compressed is kept as it is, and is hot again when it is used; when the
// packer is busy, values are dropped, the coldest first.
func TestStoreSmallValuesAndABusyPacker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDemoted(t, 1000, 200)
		s.put(thing{name: "small", body: 100, extra: 50})
		for i := range 3 {
			s.put(thing{name: fmt.Sprint(i), body: 260})
		}
		time.Sleep(time.Hour)
		s.want(t, "trimmed compressed trimmed", "small", "0", "1")
		s.Get("small")
		if n, _ := s.Cold(); n != 1 {
			t.Errorf("%d are cold", n)
		}
		for i := range 5 { // at one moment: there is no time to pack
			s.put(thing{name: fmt.Sprint("n", i), body: 260})
		}
		s.want(t, "gone gone gone gone trimmed", "0", "1", "2", "n0", "n4")
		if _, cost := s.Size(); cost > 1000 {
			t.Errorf("%d bytes", cost)
		}
		s.Wait()
	})
}
