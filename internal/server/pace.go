package server

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

// Room for Go's collector. Left alone it collects when the heap has doubled, so that a full memory of documents would take its budget twice. It
// therefore begins the earlier the more of them there are. Documents leave an eighth of their budget free, but for moments.
const (
	documentShare = 6               // one part of so many stays free
	least         = 24 << 20        // bytes that may come in before a collection, however little is kept
	earliest      = 25              // per cent of what is kept, however much that is
	usual         = 100             // Go's own
	paceInterval  = 1 * time.Second // how often the pace is looked at
	paceStep      = 5               // per cent below which a change is not worth a stop
)

// pace is how much the heap may grow before it is collected, in per cent (GOGC), when documents take some bytes of it.
func pace(documents int64) int {
	if documents <= least {
		return usual
	}
	return int(max(earliest, least*100/documents))
}

// PaceCollector keeps the process near what cache.maxBytes says, until ctx ends. It changes what all of the process shares, and does nothing where the
// environment variable GOGC already says how to collect.
func (s *Server) PaceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := usual
	defer func() { debug.SetGCPercent(usual) }()
	tick := time.NewTicker(paceInterval)
	defer tick.Stop()
	for {
		_, bytes := s.opts.Documents.Size()
		if want := pace(bytes); want-now >= paceStep || now-want >= paceStep || want != now && (want == usual || want == earliest) {
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
