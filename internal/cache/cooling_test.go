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
	packed      bool
}

func (v thing) cost() int64 {
	if v.packed {
		return v.body / 10
	}
	return v.body + v.extra
}

// cooled is a store whose packing takes a while of virtual time; it notes the order of packing, and whether two went on at once.
type cooled struct {
	*Store[string, thing]
	mu      sync.Mutex
	order   []string
	running int
	hold    time.Duration
}

func newCooled(t *testing.T, max int64, small int64) *cooled {
	c := &cooled{Store: NewStore[string, thing](max), hold: time.Second}
	t.Cleanup(c.Wait) // the bubble must not end before what is being packed
	c.Cool(Cooling[thing]{
		Trim: func(v thing) (thing, int64, bool) {
			v.extra = 0
			return v, v.cost(), true
		},
		Pack: func(v thing) (thing, int64, bool) {
			c.mu.Lock()
			if c.running++; c.running > 1 {
				t.Error("two are packed at once")
			}
			c.order = append(c.order, v.name)
			c.mu.Unlock()
			time.Sleep(c.hold)
			c.mu.Lock()
			c.running--
			c.mu.Unlock()
			v.packed, v.extra = true, 0
			return v, v.cost(), v.body >= small
		},
	})
	return c
}

func (c *cooled) put(v thing) { c.Put(v.name, v, v.cost()) }

func (c *cooled) form(name string) string {
	for k, v := range c.All() {
		switch {
		case k != name:
		case v.packed:
			return "packed"
		case v.extra > 0:
			return "whole"
		default:
			return "trimmed"
		}
	}
	return "gone"
}

func (c *cooled) want(t *testing.T, forms string, names ...string) {
	t.Helper()
	var got strings.Builder
	for _, n := range names {
		got.WriteString(c.form(n) + " ")
	}
	if got.String() != forms+" " {
		t.Errorf("%v are %s, want %s", names, got.String(), forms)
	}
}

// What was used longest ago loses first what can be made again, then its room, and goes at last; what is in use stays whole.
func TestStoreCoolsByUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCooled(t, 1000, 0)
		for i := range 5 {
			c.put(thing{name: fmt.Sprint(i), body: 100, extra: 80})
		}
		synctest.Wait() // 900: more than seven eighths. Trimming two is enough to begin with.
		c.want(t, "trimmed trimmed whole whole whole", "0", "1", "2", "3", "4")
		c.Get("0")
		c.put(thing{name: "5", body: 100, extra: 80}) // 920: three of the colder half are trimmed, then the coldest is packed
		synctest.Wait()
		time.Sleep(time.Minute)
		c.want(t, "trimmed packed trimmed trimmed whole whole", "0", "1", "2", "3", "4", "5")
		for i := range 100 {
			c.put(thing{name: fmt.Sprint("n", i), body: 100, extra: 80})
			time.Sleep(time.Minute)
			if i == 20 {
				c.want(t, "packed whole whole", "4", "n19", "n20")
			}
		}
		n, cost := c.Cold()
		if all, total := c.Size(); n < 40 || all-n < 1 || cost > 500 || total > 1000 {
			t.Errorf("%d of %d are cold, %d of %d bytes", n, all, cost, total)
		}
		c.want(t, "gone packed", "4", "n90")
		for i := range c.order[:len(c.order)-1] {
			if i > 0 && c.order[i] == c.order[i-1] {
				t.Errorf("%s is packed twice in a row", c.order[i])
			}
		}
	})
}

// The bound holds at every moment, whatever happens in whatever order, and what the store says of itself is the sum of what it holds. When
// all is over no goroutine is left (the bubble would say so).
func TestStoreBoundHoldsWhileCooling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 10_000
		c := newCooled(t, most, 200)
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
						c.Grow(name, 50, func(v thing) bool { return !v.packed })
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
			t.Errorf("only %d were packed", len(c.order))
		}
		sum, chill := int64(0), int64(0)
		for _, e := range c.items {
			sum += c.at(e).cost
			if c.at(e).cold {
				chill += c.at(e).cost
			}
		}
		if sum != c.total || chill != c.chill || len(c.items) != c.warm.Len()+c.cold.Len() {
			t.Errorf("sum %d, total %d; cold %d, said %d; %d items in lists of %d and %d", sum, c.total, chill, c.chill, len(c.items), c.warm.Len(), c.cold.Len())
		}
	})
}

// What happens to a value while it is packed wins over the packed one: a newer value, its use, and its end.
func TestStorePackedValueNeverReplacesANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*cooled)
		want      string
	}{
		"replaced": {func(c *cooled) { c.put(thing{name: "old", generation: 2, body: 300}) }, "trimmed"},
		"used":     {func(c *cooled) { c.Get("old") }, "trimmed"},
		"deleted":  {func(c *cooled) { c.Delete("old") }, "gone"},
		"nothing":  {func(*cooled) {}, "packed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCooled(t, 1000, 0)
				s.put(thing{name: "old", body: 300})
				s.put(thing{name: "new", body: 300})
				s.put(thing{name: "newest", body: 300})
				synctest.Wait() // "old" is being packed
				if len(s.order) != 1 || s.order[0] != "old" {
					t.Fatalf("packed: %v", s.order)
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

// A packed value that is used is packed until its user puts the unpacked one in its place, and only in that one's place.
func TestStorePromotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCooled(t, 1000, 0)
		for _, name := range []string{"a", "b", "c"} {
			s.put(thing{name: name, body: 300})
		}
		time.Sleep(time.Hour)
		packed, _ := s.Get("a")
		if !packed.packed {
			t.Fatal("a is not packed")
		}
		raw := packed
		raw.packed = false
		same := func(old thing, ok bool) bool { return ok && old == packed }
		if !s.Swap("a", raw, raw.cost(), same) || s.form("a") != "trimmed" {
			t.Error("a is not unpacked")
		}
		if _, cost := s.Size(); cost > 1000 {
			t.Errorf("%d bytes", cost)
		}
		if s.Swap("a", packed, packed.cost(), same) {
			t.Error("what was packed long ago takes the place of what is in use")
		}
		s.Delete("a")
		if s.Swap("a", raw, raw.cost(), same) || s.form("a") != "gone" {
			t.Error("what was deleted is back")
		}
	})
}

// What is too small to be packed is kept as it is, and is warm again when it is used; when the packer is busy, values are dropped, the
// coldest first.
func TestStoreSmallValuesAndABusyPacker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCooled(t, 1000, 200)
		s.put(thing{name: "small", body: 100, extra: 50})
		for i := range 3 {
			s.put(thing{name: fmt.Sprint(i), body: 260})
		}
		time.Sleep(time.Hour)
		s.want(t, "trimmed packed trimmed", "small", "0", "1")
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
