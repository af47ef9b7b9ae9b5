// Package server is the gate as its clients see it: mounts, middleware, the one table from error to
// status, and health. It decides nothing that concerns packages or upstreams.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/internal/edge"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Options make a Server.
type Options struct {
	Mounts  serving.Mounts
	Metrics *obs.Metrics
	Logger  *slog.Logger
	Tracer  trace.Tracer
	// PublicURL is where clients reach the gate, without a trailing slash; empty means the address
	// that each client used.
	PublicURL string
	// TrustedProxies are whose X-Forwarded-Host and X-Forwarded-Proto say which address that was.
	TrustedProxies []netip.Prefix
	// MaxInFlight bounds the requests at work at once, and Wait how long one more may wait for its
	// turn; 0 means no bound.
	MaxInFlight int
	Wait        time.Duration
	// Access is who may use the mounts and what goes on for them, until SetAccess.
	Access edge.Access
	// SpoolDir is the folder that packages which are being published pass through; it is made when
	// it is needed.
	SpoolDir string
	// Pace is how fast a client has to be; zero means 30 KiB in 30 seconds.
	Pace Pace
}

// Server holds the handlers. It is safe for concurrent use.
type Server struct {
	opts       Options
	tokenHints string
	slots      chan struct{}
	edge       atomic.Pointer[edge.Edge]
	publishing *publishing
	draining   atomic.Bool
}

// New returns a server that is ready to serve.
func New(o Options) *Server {
	s := &Server{opts: o, publishing: newPublishing(o.SpoolDir)}
	var hints []string
	for _, m := range o.Mounts {
		hints = append(hints, m.Words.Token)
	}
	s.tokenHints = strings.Join(hints, ", ")
	s.SetAccess(o.Access)
	if o.MaxInFlight > 0 {
		s.slots = make(chan struct{}, o.MaxInFlight)
	}
	return s
}

// Handler is the public face. Mounts are routed before any cleaning of paths, since an encoded
// slash means something to them.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health("ok"))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		health("ok")(w, r)
	})
	mounts := s.mounts()
	return s.observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		for _, m := range mounts {
			if below, ok := strings.CutPrefix(path, m.prefix); ok && strings.HasPrefix(below, "/") {
				if in, ok := m.enter(w, r); ok {
					m.serve(w, in, below)
				}
				return
			}
		}
		mux.ServeHTTP(w, r)
	}))
}

// Drain makes readiness fail, so that a balancer sends no new clients while the last requests end.
func (s *Server) Drain() { s.draining.Store(true) }

func health(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(text + "\n"))
	}
}

// cut ends a connection in the middle of a body, having said why in the log. It does not return.
func (s *Server) cut(r *http.Request, err error) {
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) || r.Context().Err() != nil {
		level = slog.LevelDebug
	}
	s.opts.Logger.LogAttrs(context.WithoutCancel(r.Context()), level, "transfer aborted",
		slog.String("path", r.URL.EscapedPath()), obs.Err(err))
	panic(http.ErrAbortHandler)
}

// observe measures and traces every request.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{route: "other"}
		ctx, span := s.opts.Tracer.Start(r.Context(), "serve "+r.Method, trace.WithSpanKind(trace.SpanKindServer))
		out := newPaced(w, r.WithContext(quota.With(ctx, &rec.scope)), s.opts.Pace)
		rec.paced = out
		protect(w.Header())
		defer func() {
			rec.scope.End()
			out.end()
			span.SetAttributes(attribute.String("http.route", rec.route), attribute.Int("http.response.status_code", rec.status()))
			span.End()
			s.opts.Metrics.Request(rec.route, rec.status(), time.Since(start))
		}()
		next.ServeHTTP(rec, out.request)
	})
}

// traceRefusal shows the cause of a refusal in the request's own span (R83).
func traceRefusal(ctx context.Context, r refusal) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	cause, forwarded := "other", false
	if r.cooldown != nil {
		cause, forwarded = "cooldown", r.cooldown.Forwarded
	}
	span.SetAttributes(attribute.String("ecluse.refusal", cause), attribute.Bool("ecluse.forwarded", forwarded),
		attribute.Int64("ecluse.retry_after", r.retryAfter))
	span.SetStatus(codes.Error, r.message)
}

// recorder remembers the status and the route's name.
type recorder struct {
	*paced
	route string
	code  int
	scope quota.Scope // of what the answer takes of memory
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.paced.WriteHeader(code)
}

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

func setRoute(w http.ResponseWriter, route string) {
	if rec, ok := w.(*recorder); ok {
		rec.route = route
	}
}
