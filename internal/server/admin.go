package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
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

// Admin is the operators' face: metrics and the status API. Looking changes nothing (tc-072).
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.opts.Metrics.Gatherer(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/authorities", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, s.authorities())
	})
	mux.HandleFunc("GET /api/v1/advisories", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.advisoryStatus()) })
	mux.HandleFunc("POST /api/v1/preview", s.preview)
	mux.HandleFunc("GET /api/v1/explain", s.explainAPI)
	mux.HandleFunc("GET /api/v1/queue", s.queueAPI)
	mux.HandleFunc("GET /{$}", s.statusPage)
	return mux
}

func (s *Server) authorities() []Authority {
	out := []Authority{}
	now := time.Now()
	s.opts.Table.Recall(now)
	for _, st := range s.opts.Table.Snapshot(now) {
		out = append(out, Authority{
			Host: st.Authority.Host, Port: st.Authority.Port, State: st.Phase.String(),
			Remaining: st.Remaining.Seconds(), Ceiling: st.Ceiling.Seconds(), Refused: s.opts.Metrics.Refused(st.Authority.String()),
		})
	}
	return out
}

func (s *Server) gauges() []obs.AuthorityState {
	var out []obs.AuthorityState
	now := time.Now()
	s.opts.Table.Recall(now)
	for _, st := range s.opts.Table.Snapshot(now) {
		value := map[cooldown.Phase]float64{cooldown.PhaseOpen: 0, cooldown.PhaseCooling: 1, cooldown.PhaseProbing: 2, cooldown.PhaseDue: 3}[st.Phase]
		out = append(out, obs.AuthorityState{Host: st.Authority.String(), State: value, Remaining: st.Remaining})
	}
	return out
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}
