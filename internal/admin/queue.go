package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

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
