//go:build linux || darwin

package cooldownfile

import (
	"context"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// The open path of a table with a file costs no allocation, whether the file exists or not, and the
// look before a request is written none while the file exists.
func TestOpenPathAllocatesNothing(t *testing.T) {
	for name, table := range benchTables(t) {
		now := time.Now()
		p, _ := table.Ask(t.Context(), now, npm)
		if n := testing.AllocsPerRun(1000, func() {
			p, _ := table.Ask(t.Context(), now, npm)
			p.Finish(now, 200, retryafter.Report{})
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { p.Recheck(now) }); n != 0 && name == "file" {
			t.Errorf("%s: %v allocations when a request is written", name, n)
		}
	}
}

func benchTables(t testing.TB) map[string]*cooldown.Table {
	tables := map[string]*cooldown.Table{"none": cooldown.New(cooldown.Options{})}
	for _, name := range []string{"absent", "file"} {
		f := New(t.TempDir(), obs.Discard())
		t.Cleanup(f.Close)
		tables[name] = cooldown.New(cooldown.Options{Memory: f})
		if name == "file" {
			p, _ := tables[name].Ask(context.Background(), time.Now(), files)
			p.Finish(time.Now(), 429, retryafter.Report{})
		}
	}
	return tables
}

// BenchmarkAskOpen is what a request of a client costs that is asked for, BenchmarkWritten what one
// costs that goes out.
func BenchmarkAskOpen(b *testing.B) {
	for name, table := range benchTables(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := time.Now()
				for pb.Next() {
					p, _ := table.Ask(b.Context(), now, npm)
					p.Finish(now, 200, retryafter.Report{})
				}
			})
		})
	}
}

func BenchmarkWritten(b *testing.B) {
	for name, table := range benchTables(b) {
		b.Run(name, func(b *testing.B) {
			now := time.Now()
			p, _ := table.Ask(b.Context(), now, npm)
			b.ReportAllocs()
			for b.Loop() {
				p.Recheck(now)
			}
		})
	}
}

// BenchmarkKept is what a throttling answer costs until its cooldown is on the disk.
func BenchmarkKept(b *testing.B) {
	f := New(b.TempDir(), obs.Discard())
	defer f.Close()
	table, now := cooldown.New(cooldown.Options{Memory: f}), time.Now()
	for b.Loop() {
		p, _ := table.Ask(b.Context(), now, npm)
		p.Finish(now, 429, retryafter.Parse([]string{"1"}, now))
		now = now.Add(2 * time.Second)
	}
}
