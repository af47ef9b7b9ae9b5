package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// withLittleRoom has room for few of the documents of crowd as they are.
const withLittleRoom = "cache: {maxBytes: 1MiB, diskBytes: 0, maxStale: 1h}"

// crowd publishes 20 documents of 60 KB, reads each once, and returns a path whose document is
// packed afterwards.
func (w *world) crowd() (path string) {
	w.t.Helper()
	for i := range 20 {
		name := fmt.Sprintf("p%d", i)
		w.public.SetDocument(name, packument.Generate(name, 50, 1, packument.Weight(1200, 40), packument.Published(longAgo.AddDate(-1, 0, 0), time.Hour)))
		w.want(w.get("/npm/"+name), 200, -1)
		w.app.documents.Close()
	}
	if n, _ := w.app.documents.Size(); n < 12 {
		w.t.Fatalf("only %d documents are kept", n)
	}
	return "/npm/p12" // used neither first nor last
}

// C61, R46: a packed document answers as before, with its validator and its age, without a request
// while it is young; then it is confirmed by its validator. Any number of clients at once are
// served from it.
func TestPackedDocumentAnswersAsBefore(t *testing.T) {
	inWorld(t, withLittleRoom, func(w *world) {
		first := w.get("/npm/p12")
		w.want(first, 404, -1)
		path := w.crowd()
		sent := w.public.Count()
		if cold, _ := w.app.documents.Cold(); cold == 0 {
			t.Fatal("nothing is packed")
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if a := w.get(path, "Accept-Encoding", "gzip"); a.status != 200 {
					t.Errorf("status %d", a.status)
				}
			})
		}
		wg.Wait()
		w.sent(sent)
		a := w.get(path)
		if a.header.Get("ETag") == "" || w.get(path, "If-None-Match", a.header.Get("ETag")).status != http.StatusNotModified {
			t.Error("its own validator is not known again")
		}
		if _, bytes := w.app.documents.Size(); bytes > 1<<20 {
			t.Errorf("%d bytes", bytes)
		}
		w.pushOut()
		time.Sleep(61 * time.Second)
		w.want(w.get(path), 200, -1)
		w.sent(sent + 1)
		if w.public.Seen()[sent].Header.Get("If-None-Match") == "" {
			t.Error("the validator of the packed document is lost")
		}
	})
}

// pushOut uses other documents, so that the one in use is packed again.
func (w *world) pushOut() {
	w.t.Helper()
	for i := 13; i < 20; i++ {
		w.want(w.get(fmt.Sprintf("/npm/p%d", i)), 200, -1)
		w.app.documents.Close()
	}
}

// R87, C53: while its authority cools a packed document is served as any other, older than its
// time, and nothing is sent.
func TestPackedDocumentIsServedWhileCooling(t *testing.T) {
	inWorld(t, withLittleRoom, func(w *world) {
		path := w.crowd()
		time.Sleep(2 * time.Minute)
		w.throttled("Retry-After", "600")
		sent := w.public.Count()
		a := w.get(path)
		w.want(a, 200, -1)
		if !strings.Contains(a.header.Get("Cache-Status"), "detail=cooldown") || len(w.versions(a)) != 50 {
			t.Errorf("%v, %d versions", a.header, len(w.versions(a)))
		}
		w.sent(sent)
	})
}

// What the upstream says is gone is gone in every form, on the disk too: it does not come back
// while the authority cools.
func TestPackedDocumentThatIsGone(t *testing.T) {
	for _, yaml := range []string{withLittleRoom, "cache: {maxBytes: 1MiB, maxStale: 1h}"} {
		inWorld(t, yaml, func(w *world) {
			path := w.crowd()
			synctest.Wait() // what is written is written
			time.Sleep(2 * time.Minute)
			w.public.Always(http.StatusNotFound)
			w.want(w.get(path), 404, -1)
			w.throttled("Retry-After", "600")
			w.want(w.get(path), 503, 600)
		})
	}
}

// C43, C53, and nothing grows with traffic: names that are not there, hosts that clients invent,
// and refusals leave neither documents nor authorities nor series of metrics behind.
func TestNothingGrowsWithTraffic(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		handler := w.app.Handler()
		ask := func(path, host string) {
			r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil)
			r.Host = host
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		traffic := func(from, to int) (series, documents, authorities int) {
			for i := from; i < to; i++ {
				ask(fmt.Sprintf("/npm/absent-%d", i), gateHost)
				ask("/npm/a", fmt.Sprintf("host-%d.test", i))
				ask(fmt.Sprintf("/npm/a/-/a-1.0.%d.tgz", i), gateHost)
				ask(fmt.Sprintf("/pypi/simple/absent-%d/", i), gateHost)
				ask(fmt.Sprintf("/other/%d", i), gateHost)
			}
			rec := httptest.NewRecorder()
			w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/metrics", nil))
			for line := range strings.Lines(rec.Body.String()) {
				if strings.HasPrefix(line, "ecluse_") {
					series++
				}
			}
			documents, _ = w.app.documents.Size()
			return series, documents, len(w.authorities())
		}
		s1, d1, a1 := traffic(0, 10)
		s2, d2, a2 := traffic(10, 2000)
		if s1 != s2 || d1 != 1 || d2 != 1 || a1 != a2 {
			t.Errorf("series %d, then %d; documents %d, then %d; authorities %d, then %d", s1, s2, d1, d2, a1, a2)
		}
		_, bytes := w.app.documents.Size()
		if bytes > 1<<20 {
			t.Errorf("one document takes %d bytes", bytes)
		}
	})
}
