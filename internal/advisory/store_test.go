package advisory

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// source is a scripted source behind a URL.
type source struct {
	mu     sync.Mutex
	answer func(etag string) (*http.Response, error)
	asked  []time.Time
	urls   []string
	open   int
}

// times are when the source was asked.
func (s *source) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *source) Fetch(_ context.Context, address, etag string) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.urls = append(s.asked, time.Now()), append(s.urls, address)
	resp, err := s.answer(etag)
	if resp != nil {
		s.open++
		resp.Body = closing{resp.Body, func() { s.open-- }}
	}
	return resp, err
}

type closing struct {
	io.Reader
	closed func()
}

func (c closing) Close() error { c.closed(); return nil }

func respond(status int, body []byte, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader(body))}
}

func npmRecords(n int) []string {
	var out []string
	for i := range n {
		out = append(out, oneRecord("GHSA-"+strings.Repeat("x", i+1), "x", `"versions":["1.0.0"]`))
	}
	return out
}

func zipBytes(t testing.TB, records ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(zipOf(t, records...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func remote(t testing.TB, s *source, swapped *int) *Store {
	t.Helper()
	store, err := Open(context.Background(), Options{
		Dir: t.TempDir(), Source: "https://osv.example/exports", Ecosystems: npmOnly, Interval: time.Hour, Fetcher: s,
		OnSwap: func(d *Data) {
			if !d.Loaded("npm") {
				t.Error("told of data that is not there")
			}
			*swapped++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// The source is asked again with what it said; what has not changed is confirmed, and neither
// fetched nor compiled again.
func TestUnchangedSource(t *testing.T) {
	swapped := 0
	data := zipBytes(t, npmRecords(3)...)
	s := &source{answer: func(etag string) (*http.Response, error) {
		if etag == `"one"` {
			return respond(http.StatusNotModified, nil), nil
		}
		return respond(http.StatusOK, data, "ETag", `"one"`), nil
	}}
	store := remote(t, s, &swapped)
	for i := range 3 {
		if err := store.Refresh(context.Background(), "npm"); err != nil {
			t.Fatal(err)
		}
		status := store.Status()[0]
		if swapped != 1 || !status.Loaded || status.Records != 3 || time.Since(status.Checked) > time.Minute {
			t.Errorf("look %d: %d swaps, %+v", i, swapped, status)
		}
	}
	if s.open != 0 || s.urls[0] != "https://osv.example/exports/npm/all.zip" {
		t.Errorf("%d bodies open, asked for %s", s.open, s.urls[0])
	}
	leftovers(t, store.opts.Dir, "npm")
}

// leftovers wants one database of each ecosystem in a folder, in this order, beside the lock, and
// nothing else.
func leftovers(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if ecosystem, _, ok := strings.Cut(e.Name(), "-"); ok && strings.HasSuffix(e.Name(), databaseSuffix) {
			names = append(names, ecosystem)
		} else if e.Name() != lockFile(entries) {
			t.Errorf("the folder holds %s", e.Name())
		}
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds databases of %v, want %v", names, want)
	}
}

func lockFile(entries []os.DirEntry) string {
	for _, e := range entries {
		if strings.Contains(e.Name(), "lock") {
			return e.Name()
		}
	}
	return ""
}

// Whatever goes wrong: the data stays the last that was good, nothing half done stays behind, and
// the Status says what happened.
func TestLastGoodStays(t *testing.T) {
	good := zipBytes(t, npmRecords(40)...)
	broken := append(npmRecords(98), "{", "[]")
	for _, c := range []struct {
		name, problem string
		answer        func() (*http.Response, error)
	}{
		{"no connection", "refused", func() (*http.Response, error) { return nil, errors.New("refused") }},
		{"an error of the source", "answered with status 500", func() (*http.Response, error) { return respond(500, nil), nil }},
		{"not there any more", "answered with status 404", func() (*http.Response, error) { return respond(404, good), nil }},
		{"half a zip", "not a usable zip", func() (*http.Response, error) { return respond(200, good[:len(good)/2]), nil }},
		{"a page", "not a usable zip", func() (*http.Response, error) { return respond(200, []byte("<html>Sign in</html>")), nil }},
		{"nothing", "not a usable zip", func() (*http.Response, error) { return respond(200, nil), nil }},
		{"an empty zip", "is empty", func() (*http.Response, error) { return respond(200, zipBytes(t)), nil }},
		{"another ecosystem", "is empty", func() (*http.Response, error) {
			return respond(200, zipBytes(t, `{"id":"A","affected":[{"package":{"ecosystem":"Go","name":"x"}}]}`)), nil
		}},
		{"broken records", "2 of 100 records are broken", func() (*http.Response, error) { return respond(200, zipBytes(t, broken...)), nil }},
		{"less than half", "19 records where the last good one had 40", func() (*http.Response, error) { return respond(200, zipBytes(t, npmRecords(19)...)), nil }},
		{"304 to a new question", "answered with status 304", nil},
		{"a broken body", "read failed", func() (*http.Response, error) {
			resp := respond(200, nil)
			resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(good[:10]), failing{}))
			return resp, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			swapped := 0
			s := &source{answer: func(string) (*http.Response, error) { return respond(200, good, "ETag", `"good"`), nil }}
			store := remote(t, s, &swapped)
			if c.answer == nil {
				s.answer = func(string) (*http.Response, error) { return respond(http.StatusNotModified, nil), nil }
				if err := store.Refresh(context.Background(), "npm"); err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("%v", err)
				}
				return
			}
			if err := store.Refresh(context.Background(), "npm"); err != nil {
				t.Fatal(err)
			}
			before := store.Data()
			s.answer = func(string) (*http.Response, error) { return c.answer() }
			err := store.Refresh(context.Background(), "npm")
			status := store.Status()[0]
			if err == nil || !strings.Contains(err.Error(), c.problem) || !errors.Is(status.Err, err) {
				t.Errorf("error %v, status %v, want %q", err, status.Err, c.problem)
			}
			if store.Data() != before || swapped != 1 || !status.Loaded || status.Records != 40 {
				t.Errorf("%d swaps, %+v", swapped, status)
			}
			leftovers(t, store.opts.Dir, "npm")
			if s.open != 0 {
				t.Errorf("%d bodies open", s.open)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("read failed") }

// refusal is what a cooldown of ours answers in the place of the source.
type refusal struct{}

func (refusal) Error() string            { return "cooling" }
func (refusal) RetryAfterSeconds() int64 { return 90 }

// The pauses of the source are kept to the second; virtual time shows when it is asked again.
func TestPausesOfTheSource(t *testing.T) {
	data := zipBytes(t, npmRecords(3)...)
	for _, c := range []struct {
		name   string
		answer func() (*http.Response, error)
		wait   time.Duration
	}{
		{"a pause longer than the interval", func() (*http.Response, error) { return nil, &Throttled{Wait: 2 * time.Hour} }, 2 * time.Hour},
		{"a pause shorter than the interval", func() (*http.Response, error) { return nil, &Throttled{Wait: 90 * time.Second} }, 90 * time.Second},
		{"a pause of unknown length", func() (*http.Response, error) { return nil, &Throttled{} }, time.Hour},
		{"an endless pause", func() (*http.Response, error) { return nil, &Throttled{Wait: math.MaxInt64} }, 24 * time.Hour},
		{"503 without", func() (*http.Response, error) { return respond(503, nil), nil }, 5 * time.Minute},
		{"a refusal of our own cooldown", func() (*http.Response, error) { return nil, refusal{} }, 90 * time.Second},
		{"an error", func() (*http.Response, error) { return nil, errors.New("refused") }, 5 * time.Minute},
		{"all is well", func() (*http.Response, error) { return respond(200, data), nil }, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				swapped, first := 0, true
				s := &source{}
				s.answer = func(string) (*http.Response, error) {
					if first {
						first = false
						return c.answer()
					}
					return respond(200, data), nil
				}
				store := remote(t, s, &swapped)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go store.Run(ctx)
				synctest.Wait()
				if next := store.Status()[0].Next; !next.Equal(s.times()[0].Add(c.wait)) {
					t.Errorf("to be asked again after %v, want %v", next.Sub(s.times()[0]), c.wait)
				}
				time.Sleep(c.wait - time.Nanosecond)
				synctest.Wait()
				if len(s.times()) != 1 {
					t.Fatalf("asked again after %v", s.times()[1].Sub(s.times()[0]))
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if len(s.times()) != 2 || !store.Data().Loaded("npm") {
					t.Fatalf("asked %d times", len(s.times()))
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(s.times()) != 3 {
					t.Errorf("asked %d times after another hour", len(s.times()))
				}
			})
		})
	}
}

// A restart needs no source: what was compiled is there at once, and counts as the known state of
// the source.
func TestRestart(t *testing.T) {
	swapped := 0
	s := &source{answer: func(string) (*http.Response, error) {
		return respond(200, zipBytes(t, npmRecords(3)...), "ETag", `"one"`), nil
	}}
	store := remote(t, s, &swapped)
	if err := store.Refresh(context.Background(), "npm"); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var asked string
	o := store.opts
	o.Fetcher = &source{answer: func(etag string) (*http.Response, error) { asked = etag; return respond(304, nil), nil }}
	again, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if status := again.Status()[0]; !status.Loaded || status.Records != 3 || status.Err != nil || time.Since(status.Checked) > time.Minute || status.Compiled.IsZero() {
		t.Errorf("%+v", status)
	}
	if found, err := again.Data().Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0"); err != nil || len(found) != 3 {
		t.Errorf("%v, %v", found, err)
	}
	if err := again.Refresh(context.Background(), "npm"); err != nil || asked != `"one"` {
		t.Errorf("%v, asked with %q", err, asked)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	o.Source = "https://elsewhere.example"
	moved, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := moved.Refresh(context.Background(), "npm"); err == nil || asked != "" {
		t.Errorf("%v, another source asked with %q", err, asked)
	}
}

// Nobody sees half of a swap: while data changes, each look-up is answered by the old or by the
// new.
func TestSwapUnderReaders(t *testing.T) {
	source := filepath.Join(t.TempDir(), "all.zip")
	write := func(id string) {
		if err := os.WriteFile(source, zipBytes(t, oneRecord(id, "x", `"versions":["1.0.0"]`)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("A")
	store, err := Open(context.Background(), Options{Dir: t.TempDir(), Source: source, Ecosystems: npmOnly})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Refresh(context.Background(), "npm"); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				found, err := store.Data().Lookup(registry.Package{Ecosystem: "npm", Name: "x"}, "1.0.0")
				if err != nil || len(found) != 1 || found[0].ID != "A" && found[0].ID != "BB" {
					t.Errorf("%v, %v", found, err)
				}
			}
		})
	}
	for _, id := range []string{"BB", "A", "BB"} {
		write(id)
		if err := store.Refresh(context.Background(), "npm"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
	leftovers(t, store.opts.Dir, "npm", "npm")
}

func TestLocate(t *testing.T) {
	folder := t.TempDir()
	for _, below := range []string{"bucket/npm", "bucket/PyPI", "plain/npm"} {
		if err := os.MkdirAll(filepath.Join(folder, below), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "bucket/PyPI/all.zip"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ source, ecosystem, want string }{
		{"https://osv.example", "npm", "https://osv.example/npm/all.zip"},
		{"https://osv.example/", "pypi", "https://osv.example/PyPI/all.zip"},
		{"https://osv.example/all.zip", "pypi", "https://osv.example/all.zip"},
		{"https://osv.example/{ecosystem}.zip", "pypi", "https://osv.example/PyPI.zip"},
		{"https://osv.example/{ecosystem}/x", "npm", "https://osv.example/npm/x"},
		{folder + "/bucket", "pypi", folder + "/bucket/PyPI/all.zip"},
		{folder + "/bucket", "npm", folder + "/bucket/npm"},
		{folder + "/plain", "pypi", folder + "/plain"},
		{folder + "/{ecosystem}.zip", "npm", folder + "/npm.zip"},
	} {
		if got := Locate(c.source, ecosystemtest.Named(c.ecosystem)); got != c.want {
			t.Errorf("Locate(%s, %s) = %s, want %s", c.source, c.ecosystem, got, c.want)
		}
	}
}
