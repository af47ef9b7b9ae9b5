package app

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

// Room for Go's collector. Left alone it collects when the heap has doubled: a full memory of
// documents would take its budget twice, and a gate that holds next to nothing would collect a
// dozen times a second under load. So the room is about the same whatever is kept, and grows with
// it only when there is much. Documents leave an eighth of their budget free, but for moments.
const (
	collectRoom  = 24 << 20        // bytes that may come in before a collection
	collectBase  = 6 << 20         // bytes that are live without documents
	collectLeast = 12              // per cent of what is kept, however much that is
	collectLook  = 1 * time.Second // how often the pace is looked at
)

// Pace is how much the heap may grow before it is collected, in per cent (GOGC), when documents
// take some bytes of it.
func Pace(documents int64) int {
	if documents > collectRoom*100/collectLeast {
		return collectLeast
	}
	return int(max(collectLeast, collectRoom*100/(documents+collectBase)))
}

// PaceCollector keeps the process near what cache.maxBytes says, until ctx ends. It changes what
// all of the process shares, and does nothing where the environment variable GOGC already says how
// to collect.
func (a *App) PaceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	now, before := 0, debug.SetGCPercent(100)
	defer func() { debug.SetGCPercent(before) }()
	tick := time.NewTicker(collectLook)
	defer tick.Stop()
	for {
		_, bytes := a.documents.Size()
		bytes += a.room.Used()
		// else not worth a stop
		if want := Pace(bytes); want < now*9/10 || want > now*11/10 || want == collectLeast && now != collectLeast {
			debug.SetGCPercent(want)
			now = want
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
