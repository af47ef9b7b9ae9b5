package admin

import (
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/mirror"
)

//go:embed page.html
var pageText string

// page shows the state of the gate to a person. It reloads itself and needs no script.
var page = template.Must(template.New("status").Parse(pageText)) //nolint:gochecknoglobals // parsed once, never changed

// maxOverlaps bounds the names on the page; the API has all.
const maxOverlaps = 100

// What the page shows of the mirror's queue, and how long it waits for that.
const (
	maxPageJobs = 20
	queueTime   = 2 * time.Second
)

// queue is what the page shows of the mirror's queue; nil without one, or when it does not answer.
func (a *Admin) queue(ctx context.Context) (st *mirror.Status, trouble bool) {
	if a.opts.Queue == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	got, enabled, err := a.opts.Queue(ctx)
	if err != nil || !enabled {
		return nil, err != nil
	}
	got.DeadJobs = got.DeadJobs[:min(len(got.DeadJobs), maxPageJobs)]
	got.DroppedJobs = got.DroppedJobs[:min(len(got.DroppedJobs), maxPageJobs)]
	return &got, false
}

func (a *Admin) statusPage(w http.ResponseWriter, r *http.Request) {
	queue, trouble := a.queue(r.Context())
	documents, bytes := a.opts.Documents.Size()
	cold, _ := a.opts.Documents.Cold()
	names := a.overlaps()
	more := max(0, len(names)-maxOverlaps)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_ = page.Execute(w, map[string]any{
		"Queue": queue, "QueueTrouble": trouble, "Overlaps": names[:len(names)-more], "More": more,
		"Version": a.opts.Version, "Authorities": a.authorities(), "Documents": documents, "Cold": cold, "KiB": bytes >> 10,
	})
}
