package gate

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
)

// edge is a public registry whose listing has a wrong digest until it is read whole again: every
// question with a validator is answered with the word that nothing has changed.
type edge struct {
	*world
	right, wrong []byte
	file         []byte
	heals        bool
	whole        int // listings that were sent whole
	files        int
}

func newEdge(w *world, size int) *edge {
	e := &edge{world: w, file: fakenpm.File("a", "1.0.0"), heals: true}
	w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
	rec := httptest.NewRecorder()
	w.Public.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/a", nil))
	published := fakenpm.Integrity(e.file)
	e.file = e.file[:size]
	e.right = []byte(strings.ReplaceAll(rec.Body.String(), published, fakenpm.Integrity(e.file)))
	e.wrong = []byte(strings.ReplaceAll(rec.Body.String(), published, fakenpm.Integrity([]byte("another file"))))
	w.Public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			e.files++
			_, _ = rw.Write(e.file)
			return true
		}
		rw.Header().Set("ETag", `"edge"`)
		if r.Header.Get("If-None-Match") != "" {
			rw.WriteHeader(http.StatusNotModified)
			return true
		}
		e.whole++
		if e.whole > 1 && e.heals {
			_, _ = rw.Write(e.right)
		} else {
			_, _ = rw.Write(e.wrong)
		}
		return true
	})
	return e
}

// list reads the listing, so that it is kept, and lets it grow old.
func (e *edge) list() {
	e.t.Helper()
	if _, err := e.gate.Listing(e.t.Context(), ListingRequest{Name: "a", Form: "full"}); err != nil {
		e.t.Fatal(err)
	}
	time.Sleep(2 * time.Minute)
}

// rw-005: a listing whose digest a file proves wrong is read whole, once, and the file is served in
// the same request while nothing of it has been sent; else in the next one.
func TestWrongDigestHeals(t *testing.T) {
	for name, test := range map[string]struct {
		size    int
		options []option
		late    bool // the digest is known to be wrong when most of the file was sent
	}{
		"small":           {1000, nil, false},
		"small, stored":   {1000, []option{withStore}, false},
		"large":           {80000, nil, true},
		"large, stored":   {80000, []option{withStore}, true},
		"small, by links": {1000, []option{func(_ *toy.World, o *Options) { o.Ecosystem = linked() }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				e := newEdge(w, test.size)
				e.list()
				_, body, err := w.file("a", "1.0.0")
				if test.late {
					if err == nil || e.whole != 2 {
						t.Fatalf("%v, %d listings read whole", err, e.whole)
					}
					_, body, err = w.file("a", "1.0.0")
				}
				if err != nil || body != string(e.file) || e.whole != 2 || e.files != 2 {
					t.Errorf("%d bytes, %v, %d listings read whole, %d files asked for", len(body), err, e.whole, e.files)
				}
			}, test.options...)
		})
	}
}

// rw-005: a file that is simply wrong is refused, and costs one whole listing a minute at most; the
// file itself is not asked for a second time while the listing says the same.
func TestWrongFileStaysWrong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		e := newEdge(w, 1000)
		e.heals = false
		e.list()
		for i := range 5 {
			_, _, err := w.file("a", "1.0.0")
			if e := failed[*BadUpstream](t, err); !e.Mismatch {
				t.Errorf("%+v", e)
			}
			if e.whole != 2 || e.files != i+1 {
				t.Errorf("after %d requests %d listings were read whole, %d files asked for", i+1, e.whole, e.files)
			}
		}
	})
}

// R99: while the listing's authority cools, what is kept stays kept, although a file from elsewhere
// contradicts it.
func TestWrongDigestWhileCooling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		e := newEdge(w, 1000)
		e.list()
		_, _ = w.gate.version(t.Context(), "a", "1.0.0", "a", anything)
		w.Throttle(60)
		if w.gate.documents.Reread(t.Context(), "a") {
			t.Error("read although the authority cools")
		}
		if _, err := w.gate.Listing(t.Context(), ListingRequest{Name: "a", Form: "full"}); err != nil {
			t.Error("the kept listing is lost:", err)
		}
		w.Public.Answer(nil)
	})
}

// rw-005: the mirror copies what the new reading says, at once or with its next try.
func TestMirrorHeals(t *testing.T) {
	for _, size := range []int{1000, 80000} {
		inWorld(t, func(t *testing.T, w *world) {
			e := newEdge(w, size)
			e.list()
			var bodies [][]byte
			var errs []error
			for range 2 {
				c, err := w.gate.Fetch(t.Context(), "a", toy.File("a", "1.0.0"), "http://mirror.test")
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(c.Body)
				c.Body.Close()
				bodies, errs = append(bodies, body), append(errs, err)
			}
			if size > 32<<10 {
				failed[*Unavailable](t, errs[0]) // it tries again
				bodies, errs = bodies[1:], errs[1:]
			}
			if err := errors.Join(errs...); err != nil || slices.ContainsFunc(bodies, func(b []byte) bool { return string(b) != string(e.file) }) {
				t.Errorf("%d bytes: %v", size, err)
			}
			if e.whole != 2 {
				t.Errorf("%d listings were read whole", e.whole)
			}
		})
	}
}

// A listing that is wrong about a file stays wrong about it for the mirror too: its job ends.
func TestMirrorOfAWrongFileEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		e := newEdge(w, 80000)
		e.heals = false
		e.list()
		c, err := w.gate.Fetch(t.Context(), "a", toy.File("a", "1.0.0"), "http://mirror.test")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(c.Body)
		c.Body.Close()
		failed[*Mismatch](t, err)
	})
}
