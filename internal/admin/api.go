package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ecluse-gate/ecluse/internal/overlap"
)

// Authority is one row of GET /api/v1/authorities.
type Authority struct {
	Host      string  `json:"host"`
	Port      uint16  `json:"port"`
	State     string  `json:"state"`
	Remaining float64 `json:"remaining_seconds"`
	Ceiling   float64 `json:"ceiling_seconds"`
	Refused   uint64  `json:"refused"`
}

// Handler serves the metrics, the status API and the status page to whom guard lets in.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.opts.Metrics.Gatherer(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/authorities", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, a.authorities())
	})
	mux.HandleFunc("GET /api/v1/advisories", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.advisoryStatus()) })
	mux.HandleFunc("POST /api/v1/preview", a.preview)
	mux.HandleFunc("GET /api/v1/explain", a.explainAPI)
	mux.HandleFunc("GET /api/v1/queue", a.queueAPI)
	mux.HandleFunc("GET /api/v1/overlaps", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.overlaps()) })
	mux.HandleFunc("GET /{$}", a.statusPage)
	return a.guard(mux)
}

func (a *Admin) authorities() []Authority {
	out := []Authority{}
	now := time.Now()
	a.opts.Table.Recall(now)
	for _, st := range a.opts.Table.Snapshot(now) {
		out = append(out, Authority{
			Host: st.Authority.Host, Port: st.Authority.Port, State: st.Phase.String(),
			Remaining: st.Remaining.Seconds(), Ceiling: st.Ceiling.Seconds(), Refused: a.opts.Metrics.Refused(st.Authority.String()),
		})
	}
	return out
}

func (a *Admin) overlaps() []overlap.Entry {
	if a.opts.Overlaps == nil {
		return []overlap.Entry{}
	}
	return append([]overlap.Entry{}, a.opts.Overlaps()...)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}
