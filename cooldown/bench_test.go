package cooldown_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// The open path allocates nothing, and neither does settling what it gave.
func TestOpenPathAllocatesNothing(t *testing.T) {
	table, now, a := cooldown.New(cooldown.Options{}), time.Now(), cooldown.Authority{Host: "registry.example", Port: 443}
	var refused int
	if n := testing.AllocsPerRun(1000, func() {
		p, refusal := table.Ask(t.Context(), now, a)
		if refusal != nil {
			refused++
		}
		p.Finish(now, 200, retryafter.Report{})
	}); n != 0 || refused != 0 {
		t.Errorf("%v allocations, %d refused", n, refused)
	}
}

// A refusal costs one allocation, itself.
func TestRefusalAllocatesItself(t *testing.T) {
	table, now, a := coolingTable()
	if n := testing.AllocsPerRun(1000, func() {
		if _, refusal := table.Ask(t.Context(), now, a); refusal == nil {
			panic("a permit")
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func coolingTable() (*cooldown.Table, time.Time, cooldown.Authority) {
	table, now, a := cooldown.New(cooldown.Options{}), time.Now(), cooldown.Authority{Host: "registry.example", Port: 443}
	p, _ := table.Ask(context.Background(), now, a)
	p.Finish(now, 429, retryafter.Report{})
	return table, now, a
}

// BenchmarkAskOpen is the open path: ask and finish, with one to many goroutines. The time per
// operation must not rise with them.
func BenchmarkAskOpen(b *testing.B) {
	for _, goroutines := range []int{1, 4, 16, 64, 256} {
		b.Run("goroutines="+strconv.Itoa(goroutines*runtime.GOMAXPROCS(0)), func(b *testing.B) {
			table, now, a := cooldown.New(cooldown.Options{}), time.Now(), cooldown.Authority{Host: "registry.example", Port: 443}
			b.ReportAllocs()
			b.SetParallelism(goroutines)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, _ := table.Ask(b.Context(), now, a)
					p.Finish(now, 200, retryafter.Report{})
				}
			})
		})
	}
}

// BenchmarkAskOpenAmong is the open path in a full table.
func BenchmarkAskOpenAmong(b *testing.B) {
	table, now := cooldown.New(cooldown.Options{}), time.Now()
	var a cooldown.Authority
	for i := range cooldown.DefaultMaxAuthorities {
		a = cooldown.Authority{Host: "registry" + strconv.Itoa(i) + ".example", Port: 443}
		table.Ask(b.Context(), now, a)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, _ := table.Ask(b.Context(), now, a)
		p.Finish(now, 200, retryafter.Report{})
	}
}

// BenchmarkAskCooling is the refusal path. C80: refusals are cheap, since clients may come back
// without any delay.
func BenchmarkAskCooling(b *testing.B) {
	table, now, a := coolingTable()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			table.Ask(b.Context(), now, a)
		}
	})
}
