package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/edge"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// mount is one ecosystem as its clients see it: what they ask for is read by the ecosystem, and
// given by the gate.
type mount struct {
	serving.Ecosystem
	prefix string // "/npm"
	gate   *gate.Gate
	server *Server
}

// mounts are those that are on.
func (s *Server) mounts() (on []*mount) {
	for _, m := range s.opts.Mounts {
		if m.Gate != nil {
			on = append(on, &mount{Ecosystem: m.Ecosystem, prefix: "/" + m.Name, gate: m.Gate, server: s})
		}
	}
	return on
}

// serve answers one request below the mount; path is the escaped one there.
func (m *mount) serve(w http.ResponseWriter, r *http.Request, path string) {
	ask := m.Read(r, path)
	switch want := ask.Want.(type) {
	case serving.Publish:
		m.publish(w, r, ask.Route, want)
	case serving.Change:
		m.change(w, r, ask.Route, want)
	case serving.Caller:
		m.caller(w, r, ask.Route, want)
	case serving.Audit:
		m.admit(w, r, func() { m.audit(w, r, ask.Route, want) })
	case serving.Reply:
		m.write(w, r, http.StatusOK, want.ContentType, want.Body)
	case serving.Refuse:
		m.refuse(w, r, "other", refusal{status: want.Status, message: want.Message})
	case serving.Redirect:
		if m.readOnly(w, r) {
			m.redirect(w, r, ask.Route, want.Path)
		}
	default:
		if m.readOnly(w, r) {
			m.admit(w, r, func() { m.give(w, r, ask) })
		}
	}
}

// give answers what the gate has to be asked for.
func (m *mount) give(w http.ResponseWriter, r *http.Request, ask serving.Ask) {
	switch want := ask.Want.(type) {
	case serving.File:
		m.artifact(w, r, ask.Route, gate.ArtifactRequest{
			Method: r.Method, Name: want.Name, File: want.File, Companion: want.Companion, Authorization: edge.PassOf(r).Private,
		})
	case serving.Listing:
		m.listing(w, r, ask.Route, want.Name, want.Form, m.gate.Listing)
	case serving.Version:
		m.listing(w, r, ask.Route, want.Name, want.Form, func(ctx context.Context, req gate.ListingRequest) (*gate.Listing, error) {
			return m.gate.Version(ctx, req, want.Selector)
		})
	case serving.Index:
		m.index(w, r, ask.Route, want)
	case serving.Proof:
		body, err := m.gate.Proof(r.Context(), gate.ArtifactRequest{Name: want.Name, File: want.File, Authorization: edge.PassOf(r).Private})
		m.answer(w, r, ask.Route, body, err)
	case serving.Service:
		body, err := m.gate.Service(r.Context(), gate.ServiceRequest{
			What: want.What, Path: want.Path, Name: want.Name, Authorization: edge.PassOf(r).Private,
		})
		m.answer(w, r, ask.Route, body, err)
	case serving.Search:
		body, err := m.search(r.Context(), want)
		m.answer(w, r, ask.Route, body, err)
	}
}

func (m *mount) listing(w http.ResponseWriter, r *http.Request, route, name string, form serving.Form,
	get func(context.Context, gate.ListingRequest) (*gate.Listing, error),
) {
	if !m.acceptable(w, r, route, form) {
		return
	}
	l, err := get(r.Context(), gate.ListingRequest{
		Name: name, Form: form.Name, Base: m.server.base(r) + m.prefix, Authorization: edge.PassOf(r).Private,
	})
	if err != nil {
		m.fail(w, r, route, err)
		return
	}
	if form.ContentType != "" {
		l = l.As(form.ContentType)
	}
	setRoute(w, route)
	writeListing(w, r, l)
}

// index lists all packages. No rule looks at it: what a rule withholds is withheld in the package's
// own listing.
func (m *mount) index(w http.ResponseWriter, r *http.Request, route string, ask serving.Index) {
	if !m.acceptable(w, r, route, ask.Form) {
		return
	}
	all, err := m.gate.Index(r.Context(), edge.PassOf(r).Private)
	if err != nil {
		m.fail(w, r, route, err)
		return
	}
	setRoute(w, route)
	listingHeader(w.Header(), all.Degraded, all.Cooldown)
	m.write(w, r, http.StatusOK, ask.Form.ContentType, ask.Render(all.Names, ask.Form.Name))
}

// acceptable refuses clients that accept no form that there is.
func (m *mount) acceptable(w http.ResponseWriter, r *http.Request, route string, form serving.Form) bool {
	if form.Unacceptable == "" {
		return true
	}
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	m.refuse(w, r, route, refusal{status: http.StatusNotAcceptable, message: form.Unacceptable})
	return false
}

func (m *mount) redirect(w http.ResponseWriter, r *http.Request, route, path string) {
	setRoute(w, route)
	target := m.prefix + path
	if r.URL.RawQuery != "" {
		target += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", target)
	m.write(w, r, http.StatusMovedPermanently, m.Refusal.ContentType, []byte("moved to "+target+"\n"))
}

// readOnly refuses methods other than GET and HEAD.
func (m *mount) readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	message := r.Method + " is not allowed here; nothing was changed"
	if !m.gate.Publishes() {
		message = r.Method + " is not allowed: publishing through this gate is not configured"
	}
	m.refuse(w, r, "other", refusal{status: http.StatusMethodNotAllowed, message: message})
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
	forbidden, _ := errors.AsType[*gate.Forbidden](err)
	switch {
	case forbidden != nil && edge.PassOf(r).Own:
		answer.message, level = forbiddenOwn(forbidden.Status, edge.PassOf(r).Private), slog.LevelWarn
	case answer.status == http.StatusInternalServerError:
		level = slog.LevelError
	case answer.status == http.StatusBadGateway || answer.status == http.StatusServiceUnavailable && answer.cooldown == nil:
		level = slog.LevelWarn
	case is[*gate.Denied](err):
		level = slog.LevelInfo
	}
	if log := m.server.opts.Logger; log.Enabled(r.Context(), level) {
		log.LogAttrs(context.WithoutCancel(r.Context()), level, "request refused", obs.Ecosystem(m.Name),
			slog.Int("status", answer.status), slog.String("path", r.URL.EscapedPath()), obs.Err(err))
	}
	m.refuse(w, r, route, answer)
}

// forbiddenOwn is what a caller hears whose own credential was not in question.
func forbiddenOwn(status int, credential string) string {
	if credential == "" {
		return fmt.Sprintf("the private registry asks for a credential (%d), and this gate has none for it; tell whoever runs the gate", status)
	}
	return fmt.Sprintf("the private registry rejected the gate's own credential (%d); tell whoever runs the gate", status)
}

// refuse writes a refusal in the ecosystem's dialect.
func (m *mount) refuse(w http.ResponseWriter, r *http.Request, route string, answer refusal) {
	setRoute(w, route)
	traceRefusal(r.Context(), answer)
	answer.header(w.Header())
	m.write(w, r, answer.status, m.Refusal.ContentType, m.Refusal.Body(m.server.helped(answer.message)))
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
