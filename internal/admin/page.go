package admin

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed page.html
var pageText string

// page shows the state of the gate to a person. It reloads itself and needs no script.
var page = template.Must(template.New("status").Parse(pageText)) //nolint:gochecknoglobals // parsed once, never changed

// maxOverlaps bounds the names on the page; the API has all.
const maxOverlaps = 100

func (a *Admin) statusPage(w http.ResponseWriter, _ *http.Request) {
	documents, bytes := a.opts.Documents.Size()
	cold, _ := a.opts.Documents.Cold()
	names := a.overlaps()
	more := max(0, len(names)-maxOverlaps)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_ = page.Execute(w, map[string]any{
		"Overlaps": names[:len(names)-more], "More": more,
		"Version": a.opts.Version, "Authorities": a.authorities(), "Documents": documents, "Cold": cold, "KiB": bytes >> 10,
	})
}
