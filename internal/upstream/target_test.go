package upstream

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// writeServer counts the writes that arrive, and ends them as a test wants.
type writeServer struct {
	*httptest.Server
	mu     sync.Mutex
	writes int
	act    func(w http.ResponseWriter, r *http.Request)
}

func newWriteServer(t *testing.T, act func(http.ResponseWriter, *http.Request)) *writeServer {
	s := &writeServer{act: act}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.mu.Lock()
			s.writes++
			s.mu.Unlock()
			s.act(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *writeServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func newTarget(t *testing.T, address string) (*Target, *Client) {
	t.Helper()
	c := New(Options{
		Table: cooldown.New(cooldown.Options{}), Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""),
	})
	t.Cleanup(c.Close)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	target, err := c.Target(u, Encoded)
	if err != nil {
		t.Fatal(err)
	}
	return target, c
}

// tc-079, tc-080, tc-081: a write is sent once, also when the connection that a read left behind
// dies under it, before or after the body.
func TestWriteIsSentOnce(t *testing.T) {
	reset := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for name, act := range map[string]func(http.ResponseWriter, *http.Request){
		"reset before the body": reset,
		"reset after the body":  func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); reset(w, r) },
		"503": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWriteServer(t, act)
			target, _ := newTarget(t, s.URL)
			for i := 1; i <= 3; i++ {
				// leaves a connection behind
				resp, err := target.Read(t.Context(), Request{Method: http.MethodGet, URL: target.URL(), Kind: Metadata}, "")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				// strings.Reader is a body that net/http would rewind if it were let.
				resp, err = target.Write(t.Context(), Write{Method: http.MethodPut, URL: target.URL(), Body: strings.NewReader("body"), Length: 4})
				if err == nil {
					resp.Body.Close()
				}
				if _, failed := errors.AsType[*Failure](err); strings.HasPrefix(name, "reset") != failed {
					t.Errorf("write ended with %v", err)
				}
				if n := s.count(); n != i {
					t.Fatalf("after %d writes the target saw %d", i, n)
				}
			}
		})
	}
}

// R8: a target's 429 is no cooldown, even of an authority that is public as well, and a cooldown of
// that authority stops no write.
func TestTargetSharesAHostWithAPublicUpstream(t *testing.T) {
	s := newWriteServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	target, c := newTarget(t, s.URL)
	public, err := c.Public(target.URL(), Encoded)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		resp, err := target.Write(t.Context(), Write{Method: http.MethodPut, URL: target.URL(), Body: strings.NewReader("x"), Length: 1, Authorization: "Bearer t"})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	write()
	if wait, closed := public.Remaining(time.Now()); closed {
		t.Fatalf("the public authority cools for %v", wait)
	}
	permit, _ := c.opts.Table.Ask(t.Context(), time.Now(), public.Authority())
	resp := &http.Response{StatusCode: 429, Header: http.Header{}}
	permit.Finish(time.Now(), resp.StatusCode, retryAfterNone(resp))
	if _, closed := public.Remaining(time.Now()); !closed {
		t.Fatal("no cooldown began")
	}
	write()
	if s.count() != 2 {
		t.Errorf("%d writes arrived, want 2", s.count())
	}
}

// A body that cannot be read to its end is told apart from a target that fails.
func TestBodyFails(t *testing.T) {
	s := newWriteServer(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	target, _ := newTarget(t, s.URL)
	broken := errors.New("the disk is gone")
	_, err := target.Write(t.Context(), Write{
		Method: http.MethodPut, URL: target.URL(), Length: 10, Body: io.MultiReader(strings.NewReader("four"), failing{broken}),
	})
	if !errors.Is(err, ErrBody) || !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func retryAfterNone(resp *http.Response) retryafter.Report {
	return retryafter.Parse(resp.Header.Values("Retry-After"), time.Now())
}
