package documents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// options are those of the documents of a world.
func options(w *toy.World) Options {
	return Options{
		Protocol: Protocol{
			Name: toy.Name, Accept: "application/json", Path: toy.ListingPath, Scan: toy.Scan, Serial: toy.Serial, ScanIndex: toy.ScanIndex,
		},
		Public: w.PublicUpstream(toy.PublicHost), Side: refusal.Side{Authority: "registry.test:80", Part: "registry"},
		Private: w.PrivateUpstream(), Memory: NewMemory(64 << 20), MaxStale: 5 * time.Minute, Metrics: w.Metrics, Logger: w.Logger,
	}
}

// inside runs a test of documents in virtual time.
func inside(t *testing.T, test func(*testing.T, *toy.World, *Documents)) {
	t.Helper()
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		d := New(options(w))
		test(t, w, d)
		d.opts.Memory.Close()
	})
}

// get asks for a document and checks the state and the number of versions in it.
func get(t testing.TB, d *Documents, name string, maxAge time.Duration, want State, versions int) Answer {
	t.Helper()
	got, err := d.Get(t.Context(), name, maxAge)
	n := 0
	if got.Document != nil {
		n = len(got.Document.Versions())
	}
	if got.State != want || n != versions || (err != nil) != (want == Failed) || (got.Cooldown != nil) != (want == Retained) {
		t.Errorf("state %d with %d versions, %v; want %d with %d", got.State, n, err, want, versions)
	}
	return got
}

// failure is the error of a document that cannot be had.
func failure[E error](t testing.TB, d *Documents, name string) E {
	t.Helper()
	got, err := d.Get(t.Context(), name, 0)
	e, ok := errors.AsType[E](err)
	if !ok || got.State != Failed || got.Document != nil {
		t.Fatalf("state %d, %v", got.State, err)
	}
	return e
}

// A document serves as long as it is young enough for who asks, and is confirmed by a 304 after
// that, with the age that this gives it (C61). R87: while the authority cools it is retained, up to
// a bound; R49, R35: beyond that, and for what nobody has read, there is the wait.
func TestStates(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		if got := get(t, d, "a", time.Minute, Fresh, 1); !got.Confirmed {
			t.Error("what was read for this request is not confirmed")
		}
		get(t, d, "none", time.Minute, Absent, 0)
		w.Sent(2)
		time.Sleep(59 * time.Second)
		if got := get(t, d, "a", time.Minute, Fresh, 1); got.Confirmed || time.Since(got.Document.Checked()) != 59*time.Second {
			t.Errorf("it is confirmed: %v, checked %v", got.Confirmed, got.Document.Checked())
		}
		w.Sent(2)
		time.Sleep(time.Second)
		if got := get(t, d, "a", time.Minute, Fresh, 1); !got.Confirmed || time.Since(got.Document.Checked()) != 0 {
			t.Error("the 304 does not count")
		}
		if seen := w.Public.Seen(); len(seen) != 3 || seen[2].Header.Get("If-None-Match") == "" {
			t.Errorf("seen %+v", seen)
		}
		w.Throttle(600)
		time.Sleep(time.Minute)
		got := get(t, d, "a", time.Minute, Retained, 1)
		if !got.Cooldown.Forwarded || got.Cooldown.Wait != 10*time.Minute || got.Cooldown.Authority != "registry.test:80" {
			t.Errorf("%+v", got.Cooldown)
		}
		if got = get(t, d, "a", time.Minute, Retained, 1); got.Cooldown.Forwarded || got.Cooldown.RetryAfter() != 600 {
			t.Errorf("%+v", got.Cooldown)
		}
		if e := failure[*refusal.Unavailable](t, d, "b"); !e.Cooldown || e.RetryAfter() != 600 {
			t.Errorf("%+v", e)
		}
		w.Sent(4)
		time.Sleep(4*time.Minute - time.Nanosecond)
		get(t, d, "a", time.Minute, Retained, 1)
		time.Sleep(time.Nanosecond)
		failure[*refusal.Unavailable](t, d, "a") // as old as it may be
		w.Sent(4)
		time.Sleep(10 * time.Minute)
		w.Public.Answer(nil)
		get(t, d, "a", time.Minute, Fresh, 1)
	})
}

// R46, R80: many callers share one read, and one throttled answer is one caller's own.
func TestSharedRead(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		var mu sync.Mutex
		forwarded, collapsed := 0, 0
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				e := failure[*refusal.Unavailable](t, d, "a")
				mu.Lock()
				defer mu.Unlock()
				if e.Forwarded {
					forwarded++
				}
				if e.Collapsed {
					collapsed++
				}
			})
		}
		wg.Wait()
		if w.Sent(1); forwarded != 1 || collapsed != 19 {
			t.Errorf("%d forwarded, %d collapsed", forwarded, collapsed)
		}
	})
}

// R46, R69: a caller that goes away takes no document from another, and with the last one goes the
// read. What one has read while another waited to begin is not read again.
func TestCallersGoAway(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		gone := make(chan struct{})
		w.Public.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-time.After(5 * time.Second):
				return false
			case <-r.Context().Done():
				close(gone)
				return true
			}
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		ask := func() { _, err := d.Get(ctx, "a", time.Minute); ended <- err }
		go ask()
		done := make(chan struct{})
		go func() { get(t, d, "a", time.Minute, Fresh, 1); close(done) }()
		time.Sleep(time.Second)
		cancel(errors.New("gone"))
		if err := <-ended; err == nil || err.Error() != "gone" {
			t.Error(err)
		}
		<-done
		time.Sleep(time.Hour)
		ctx, cancel = context.WithCancelCause(t.Context())
		go ask()
		time.Sleep(time.Second)
		cancel(errors.New("gone"))
		<-ended
		<-gone
		w.Sent(2)
	})
}

// R45, R92: what is no document and no pause is a refusal of its own, and leaves the kept document
// as it was.
func TestUnusableAnswers(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		get(t, d, "a", time.Minute, Fresh, 1)
		for _, code := range []int{500, 503, 408} {
			w.Public.Always(code)
			if e := failure[*refusal.Unavailable](t, d, "a"); e.Cooldown || e.RetryAfter() != 1 {
				t.Errorf("%d: %+v", code, e)
			}
		}
		for _, code := range []int{403, 302, 304} {
			w.Public.Always(code)
			if e := failure[*refusal.BadUpstream](t, d, "b"); e.Status != code {
				t.Errorf("%d: %+v", code, e)
			}
		}
		w.Public.Answer(nil)
		for _, body := range []string{"no JSON", `{"versions": {"1": {"dist": {"tarball": "x", "integrity": "sha512-?"}}}}`} {
			w.Public.SetDocument("b", []byte(body))
			failure[*refusal.BadUpstream](t, d, "b")
		}
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Encoding", "gzip")
			_, _ = rw.Write([]byte("no gzip"))
			return true
		})
		failure[*refusal.BadUpstream](t, d, "b")
		w.Public.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		if e := failure[*refusal.Unavailable](t, d, "b"); e.Cooldown || !strings.Contains(e.Reason, "did not answer") {
			t.Errorf("%+v", e)
		}
		get(t, d, "a", time.Minute, Fresh, 1)
	})
}

// An upstream that says that a package has gone is believed: nothing is retained of it.
func TestGone(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		get(t, d, "a", time.Minute, Fresh, 1)
		time.Sleep(time.Minute)
		w.Public.Always(http.StatusGone)
		if got := get(t, d, "a", time.Minute, Absent, 0); !got.Confirmed {
			t.Error("not confirmed")
		}
		w.Throttle(60)
		failure[*refusal.Unavailable](t, d, "a")
	})
}

// C22: an upstream that serves an older document than before does not take versions away; it has
// confirmed the newer one.
func TestOlderDocument(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		body := func(serial int, versions ...string) {
			parts := make([]string, len(versions))
			for i, v := range versions {
				parts[i] = fmt.Sprintf(`%q: {"dist": {"tarball": "http://files.test/%s"}}`, v, v)
			}
			w.Public.SetDocument("a", fmt.Appendf(nil, `{"serial": %d, "versions": {%s}}`, serial, strings.Join(parts, ", ")))
		}
		body(2, "1", "2")
		get(t, d, "a", time.Minute, Fresh, 2)
		body(1, "1")
		if got := get(t, d, "a", 0, Fresh, 2); !got.Confirmed {
			t.Error("not confirmed")
		}
		if got := w.Metric(`ecluse_stale_upstream_total{ecosystem="toy"}`); got != "1" {
			t.Errorf("counted %s", got)
		}
		body(3, "1", "2", "3")
		get(t, d, "a", 0, Fresh, 3)
		time.Sleep(24 * time.Hour) // C61: a body is not confirmed for ever
		get(t, d, "a", time.Minute, Fresh, 3)
		if seen := w.Public.Seen(); seen[len(seen)-1].Header.Get("If-None-Match") != "" {
			t.Error("a day old, and only confirmed")
		}
	})
}

// Where only links count, entries whose files lie at other hosts are told apart, once in the log
// and in the metric; so are entries that cannot be used.
func TestElsewhere(t *testing.T) {
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		o := options(w)
		files := w.PublicUpstream(toy.FilesHost)
		o.Owned = files.Owns
		d := New(o)
		w.Public.SetDocument("a", []byte(`{"versions": {
			"1": {"dist": {"tarball": "http://files.test/1"}}, "2": {"dist": {"tarball": "http://other.test/2"}}, "3": {}}}`))
		got := get(t, d, "a", time.Minute, Fresh, 2)
		if e := got.Document; e.Elsewhere(0) || !e.Elsewhere(1) || e.CountElsewhere() != 1 || !w.Logged("a-2.tgz") {
			t.Errorf("%v %v", e.Elsewhere(0), e.Elsewhere(1))
		}
		if got := w.Metric(`ecluse_dropped_versions_total{ecosystem="toy"}`); got != "2" {
			t.Errorf("dropped %s", got)
		}
	})
}

// Held looks at the memory alone, and at nothing that is too old.
func TestHeld(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		if d.Held("a", time.Minute) {
			t.Error("before it was read")
		}
		get(t, d, "a", time.Minute, Fresh, 1)
		time.Sleep(time.Minute - 1)
		if !d.Held("a", time.Minute) {
			t.Error("not held")
		}
		time.Sleep(time.Nanosecond)
		if d.Held("a", time.Minute) {
			t.Error("held when it is too old")
		}
		w.Sent(1)
	})
}

// The list of all packages obeys the same times and the same cooldown, and is read once for
// everybody.
func TestList(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		list := func(maxAge time.Duration, want, stale bool) error {
			t.Helper()
			names, cooldown, err := d.List(t.Context(), maxAge)
			if (err == nil) != want || want && !slices.Equal(names, []string{"a", "b"}) || (cooldown != nil) != stale {
				t.Errorf("%v, %v, %v", names, cooldown, err)
			}
			return err
		}
		if _, absent := errors.AsType[*refusal.NotFound](list(time.Minute, false, false)); !absent {
			t.Error("not absent")
		}
		w.Public.SetDocument("", []byte("no list"))
		list(time.Minute, false, false)
		w.Public.SetDocument("", []byte(`["a", "b"]`))
		list(time.Minute, true, false)
		time.Sleep(59 * time.Second)
		list(time.Minute, true, false)
		w.Sent(3)
		w.Throttle(600)
		time.Sleep(time.Second)
		list(time.Minute, true, true)
		list(time.Minute, true, true)
		w.Sent(4)
		time.Sleep(5 * time.Minute)
		list(time.Minute, false, false)
		time.Sleep(10 * time.Minute)
		w.Public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false })
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { list(time.Minute, true, false) })
		}
		wg.Wait()
		w.Sent(5)
	})
}

// A private listing is read with the caller's credential, each time; it starts no cooldown (R8,
// R41).
func TestPrivate(t *testing.T) {
	inside(t, func(t *testing.T, w *toy.World, d *Documents) {
		w.Private.Publish("own", "1.0.0", toy.LongAgo, nil)
		for range 2 {
			doc, err := d.Private(t.Context(), "own", "Bearer x")
			if err != nil || len(doc.Versions()) != 1 {
				t.Fatal(doc, err)
			}
		}
		if seen := w.Private.Seen(); len(seen) != 2 || seen[1].Header.Get("Authorization") != "Bearer x" {
			t.Errorf("seen %+v", seen)
		}
		if doc, err := d.Private(t.Context(), "none", ""); doc != nil || err != nil {
			t.Error(doc, err)
		}
		w.Private.SetDocument("", []byte(`["own"]`))
		if names, err := d.PrivateList(t.Context(), ""); err != nil || !slices.Equal(names, []string{"own"}) {
			t.Error(names, err)
		}
		for _, body := range []string{"no JSON"} {
			w.Private.SetDocument("own", []byte(body))
			w.Private.SetDocument("", []byte(body))
			_, err := d.Private(t.Context(), "own", "")
			_, err2 := d.PrivateList(t.Context(), "")
			if _, bad := errors.AsType[*refusal.BadUpstream](errors.Join(err, err2)); !bad || err == nil || err2 == nil {
				t.Error(err, err2)
			}
		}
		for code, wait := range map[int]int64{401: 0, 403: 0, 429: 30, 500: 30, 418: 0} {
			w.Private.Always(code, "Retry-After", "30")
			_, err := d.Private(t.Context(), "own", "")
			transient, ok := errors.AsType[*refusal.Unavailable](err)
			if err == nil || ok != (wait > 0) || ok && (transient.RetryAfter() != wait || transient.Cooldown) {
				t.Errorf("%d: %v", code, err)
			}
		}
		w.Private.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		if _, err := d.Private(t.Context(), "own", ""); !strings.Contains(fmt.Sprint(err), "did not answer") {
			t.Error(err)
		}
		none := New(Options{Protocol: d.opts.Protocol, Memory: NewMemory(1)})
		if doc, err := none.Private(t.Context(), "own", ""); doc != nil || err != nil {
			t.Error(doc, err)
		}
	})
}
