// Package admin is the gate as its operators see it: metrics, the status API and its page, what
// other rules would change, and why a version is admitted or denied. Looking changes nothing
// (tc-072).
package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Options make an Admin.
type Options struct {
	NPM  *gate.Gate
	PyPI *gate.Gate
	// Documents is the memory of both.
	Documents *gate.Documents
	Table     *cooldown.Table
	Metrics   *obs.Metrics
	Logger    *slog.Logger
	// Advisories are the advisory data; nil: there is no source.
	Advisories *advisory.Store
	// Queue reads the status of the mirror's queue; enabled is false while there is none.
	Queue func(context.Context) (status mirror.Status, enabled bool, err error)
	// Version is shown by the status page.
	Version string
}

// Admin holds the handlers. It is safe for concurrent use.
type Admin struct{ opts Options }

// New returns an Admin that is ready to serve.
func New(o Options) *Admin { return &Admin{o} }

// Authority is one row of GET /api/v1/authorities.
type Authority struct {
	Host      string  `json:"host"`
	Port      uint16  `json:"port"`
	State     string  `json:"state"`
	Remaining float64 `json:"remaining_seconds"`
	Ceiling   float64 `json:"ceiling_seconds"`
	Refused   uint64  `json:"refused"`
}

// Handler serves the metrics, the status API and the status page.
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
	mux.HandleFunc("GET /{$}", a.statusPage)
	return mux
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

// advisoryStatus is how things stand with the data of one ecosystem, for the admin API.
type advisoryStatus struct {
	Ecosystem string `json:"ecosystem"`
	Loaded    bool   `json:"loaded"`
	Records   int    `json:"records"`
	Checked   string `json:"checked"`
	Error     string `json:"error,omitempty"`
}

func (a *Admin) advisoryStatus() []advisoryStatus {
	out := []advisoryStatus{}
	if a.opts.Advisories == nil {
		return out
	}
	for _, st := range a.opts.Advisories.Status() {
		row := advisoryStatus{Ecosystem: st.Ecosystem, Loaded: st.Loaded, Records: st.Records}
		if !st.Checked.IsZero() {
			row.Checked = st.Checked.UTC().Format("2006-01-02T15:04:05Z")
		}
		if st.Err != nil {
			row.Error = st.Err.Error()
		}
		out = append(out, row)
	}
	return out
}

// queueAPI answers GET /api/v1/queue.
func (a *Admin) queueAPI(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	st, enabled, err := a.opts.Queue(ctx)
	if err != nil {
		a.opts.Logger.Warn("the job queue does not answer", obs.Err(err))
		http.Error(w, "the job queue does not answer; see the gate's log", http.StatusServiceUnavailable)
		return
	}
	if !enabled {
		writeJSON(w, struct {
			Enabled bool `json:"enabled"`
		}{})
		return
	}
	writeJSON(w, Queue{Enabled: true, Status: st})
}

// Queue is the answer of GET /api/v1/queue; without a mirror it is only "enabled": false.
type Queue struct {
	Enabled bool `json:"enabled"`
	mirror.Status
}

// badRequest refuses what was asked.
func badRequest(w http.ResponseWriter, message string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(npm.ErrorBody(message))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}
