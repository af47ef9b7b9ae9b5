package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
)

// mount is what the mounts of all ecosystems share: admission, files, and refusals in the
// ecosystem's dialect.
type mount struct {
	prefix    string // "/npm"
	ecosystem string
	gate      *gate.Gate
	server    *Server
	// refusalType and refusalBody are the dialect of refusals (R37).
	refusalType string
	refusalBody func(message string) []byte
}

// readOnly refuses methods other than GET and HEAD.
func (m *mount) readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	m.refuse(w, r, "other", refusal{
		status: http.StatusMethodNotAllowed, message: r.Method + " is not allowed: publishing through this gate is not configured",
	})
	return false
}

// admit runs work when a place is free, or refuses after a bounded wait.
func (m *mount) admit(w http.ResponseWriter, r *http.Request, work func()) {
	slots := m.server.slots
	if slots == nil {
		work()
		return
	}
	t := time.NewTimer(m.server.opts.Wait)
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		leave := sync.OnceFunc(func() { <-slots })
		defer leave()
		onStall(w, leave)
		work()
	case <-t.C:
		m.refuse(w, r, "busy", refusal{
			status: http.StatusServiceUnavailable, retryAfter: 1, message: "too many requests in flight; try again shortly",
		})
	case <-r.Context().Done():
	}
}

func (m *mount) artifact(w http.ResponseWriter, r *http.Request, route string, req gate.ArtifactRequest) {
	a, err := m.gate.Artifact(r.Context(), req)
	quota.End(r.Context()) // the listing is not needed any more
	if err != nil {
		m.fail(w, r, route, err)
		return
	}
	setRoute(w, route)
	m.server.writeArtifact(w, r, a)
}

// fail answers an error, and logs it when an operator has something to learn from it. A cooldown is
// told by its transitions alone.
func (m *mount) fail(w http.ResponseWriter, r *http.Request, route string, err error) {
	answer := refuse(err)
	level := slog.LevelDebug
	switch {
	case answer.status == http.StatusInternalServerError:
		level = slog.LevelError
	case answer.status == http.StatusBadGateway || answer.status == http.StatusServiceUnavailable && answer.cooldown == nil:
		level = slog.LevelWarn
	case is[*gate.Denied](err):
		level = slog.LevelInfo
	}
	if log := m.server.opts.Logger; log.Enabled(r.Context(), level) {
		log.LogAttrs(context.WithoutCancel(r.Context()), level, "request refused", obs.Ecosystem(m.ecosystem),
			slog.Int("status", answer.status), slog.String("path", r.URL.EscapedPath()), obs.Err(err))
	}
	m.refuse(w, r, route, answer)
}

// refuse writes a refusal in the ecosystem's dialect.
func (m *mount) refuse(w http.ResponseWriter, r *http.Request, route string, answer refusal) {
	setRoute(w, route)
	traceRefusal(r.Context(), answer)
	message := answer.message
	if help := m.server.access.Load().help; help != "" {
		message += ". " + help
	}
	answer.header(w.Header())
	m.write(w, r, answer.status, m.refusalType, m.refusalBody(message))
}

func (m *mount) write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
