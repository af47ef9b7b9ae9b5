package obs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// said is a log that counts.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), part)
}

func (s *said) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A store that fails is one warning and a gauge; one that works again is one line; one that does
// both by turns is heard of now and then.
func TestStoreReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, m := &said{}, NewMetrics()
		s := m.Store("artifacts", log.logger())
		want := func(failing float64, warnings, works, rooms, damaged int) {
			t.Helper()
			if got := testutil.ToFloat64(m.storeFailing.WithLabelValues("artifacts")); got != failing {
				t.Errorf("the gauge is %v, not %v", got, failing)
			}
			for text, n := range map[string]int{"a store on disk fails": warnings, "works again": works, "disk is full": rooms, "discarding damaged": damaged} {
				if got := log.count(text); got != n {
					t.Errorf("%q %d times, not %d", text, got, n)
				}
			}
		}
		s.Works()
		want(0, 0, 0, 0, 0)
		for range 3 {
			s.Failed(syscall.EROFS)
		}
		want(1, 1, 0, 0, 0)
		s.Works()
		want(0, 1, 1, 0, 0)
		s.Failed(syscall.EIO)
		want(1, 1, 1, 0, 0)
		s.Works()
		want(0, 1, 1, 0, 0)
		time.Sleep(quietFor)
		s.Failed(syscall.EIO)
		want(1, 2, 1, 0, 0)
		s.Full(syscall.ENOSPC)
		s.Full(syscall.ENOSPC)
		want(1, 2, 1, 1, 0)
		time.Sleep(quietFor)
		s.Full(syscall.ENOSPC)
		want(1, 2, 1, 2, 0)
		s.Damaged("x", errors.New("flipped"))
		s.Damaged("y", errors.New("flipped"))
		want(1, 2, 1, 2, 2)
		if got := testutil.ToFloat64(m.storeDamaged.WithLabelValues("artifacts")); got != 2 {
			t.Errorf("%v damaged", got)
		}
		var none *Store
		none.Failed(syscall.EIO)
		none.Works()
		none.Full(syscall.EIO)
		none.Damaged("x", syscall.EIO)
	})
}

// A process without a descriptor says so once, whichever connection or store meets it first; that
// it has some again is found without anybody's help.
func TestOutOfDescriptors(t *testing.T) {
	for _, fault := range []error{syscall.EMFILE, syscall.ENFILE} {
		synctest.Test(t, func(t *testing.T) {
			log, m := &said{}, NewMetrics()
			gauge := func() float64 { return testutil.ToFloat64(m.descriptors.exhausted) }
			if m.Exhausted(log.logger(), nil) || m.Exhausted(log.logger(), syscall.ENOSPC) || gauge() != 0 {
				t.Error("something else was taken for it")
			}
			wrapped := &net.OpError{Op: "accept", Err: fmt.Errorf("x: %w", fault)}
			l := m.Listener(failing{err: wrapped}, log.logger())
			for range 3 {
				if _, err := l.Accept(); !errors.Is(err, fault) {
					t.Error(err)
				}
				m.Store("artifacts", log.logger()).Failed(fault)
				m.Store("documents", log.logger()).Failed(fault)
			}
			if gauge() != 1 || log.count("out of file descriptors") != 1 || log.count("WARN") != 1 {
				t.Errorf("gauge %v, log %s", gauge(), log.text.String())
			}
			if got := testutil.ToFloat64(m.storeFailing.WithLabelValues("documents")); got != 1 {
				t.Errorf("the store's gauge is %v", got)
			}
			time.Sleep(lookFor + time.Millisecond)
			synctest.Wait()
			if gauge() != 0 || log.count("there are file descriptors again") != 1 {
				t.Errorf("gauge %v, log %s", gauge(), log.text.String())
			}
			_, _ = l.Accept()
			if gauge() != 1 || log.count("out of file descriptors") != 1 {
				t.Errorf("again: gauge %v, log %s", gauge(), log.text.String())
			}
			time.Sleep(quietFor)
			synctest.Wait()
			if log.count("again") != 1 {
				t.Errorf("the end of what was not said: %s", log.text.String())
			}
			_, _ = l.Accept()
			if log.count("out of file descriptors") != 2 {
				t.Errorf("after %v: %s", quietFor, log.text.String())
			}
			time.Sleep(lookFor + time.Millisecond)
			var none *Metrics
			if !none.Exhausted(nil, fault) {
				t.Error("nil")
			}
		})
	}
}

type failing struct {
	net.Listener
	err error
}

func (f failing) Accept() (net.Conn, error) { return nil, f.err }

// The lines of the HTTP server are lines of the log: a panic of ours is an error with its stack,
// and one that is told elsewhere, or is a client's doing, is for who debugs.
func TestServerLog(t *testing.T) {
	log := &said{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("ouch") }))
	server.Config.ErrorLog = ServerLog(log.logger())
	server.Start()
	defer server.Close()
	if resp, err := http.Get(server.URL); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	server.Config.ErrorLog.Print("http: Accept error: accept tcp: too many open files; retrying in 1s")
	server.Config.ErrorLog.Print("http: Accept error: accept tcp: no buffer space available; retrying in 1s")
	server.Config.ErrorLog.Print("http: URL query contains semicolon")
	log.mu.Lock()
	defer log.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(log.text.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	for i, parts := range [][]string{
		{`"level":"ERROR"`, "ouch", `"stack":"goroutine`},
		{`"level":"DEBUG"`, "too many open files"},
		{`"level":"WARN"`, "no buffer space"},
		{`"level":"DEBUG"`, "semicolon"},
	} {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%q is not in %s", part, lines[i])
			}
		}
	}
}

// Traces that nobody takes are a line of the log now and then.
func TestTraceErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &said{}
		h := &traceErrors{logger: log.logger()}
		for range 3 {
			h.Handle(errors.New("connection refused"))
		}
		time.Sleep(quietFor)
		h.Handle(errors.New("connection refused"))
		if n := log.count("traces could not be exported"); n != 2 {
			t.Errorf("%d lines", n)
		}
	})
}
