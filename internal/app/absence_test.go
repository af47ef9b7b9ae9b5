package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// kept are the ways to a document that the upstream has not confirmed for the request at hand.
var kept = map[string]struct {
	yaml string
	age  func(*world, string)
}{
	"inside its time": {"cache: {maxStale: 1h}", func(*world, string) { time.Sleep(time.Second) }},
	"near its end":    {"cache: {maxStale: 1h}", func(*world, string) { time.Sleep(50 * time.Second) }},
	"retained":        {"cache: {maxStale: 1h}", func(*world, string) { time.Sleep(30 * time.Minute) }},
	"from before a start": {"cache: {maxStale: 1h}", func(w *world, yaml string) {
		w.restart(yaml)
		time.Sleep(2 * time.Minute)
	}},
}

// explained is the answer of the admin face for a package or a version.
func (w *world) explained(target string) answer {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/api/v1/explain?package="+target, nil))
	return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
}

// names checks that a refusal says what cools, in its body and in Cache-Status (R101).
func (w *world) names(a answer, authority, part string) {
	w.t.Helper()
	if !strings.Contains(a.body, authority+" ("+part+")") {
		w.t.Errorf("the body names no %s (%s): %s", authority, part, a.body)
	}
	if got, want := a.header.Get("Cache-Status"), `ecluse; hit=?0; authority="`+authority+`"; part=`+part+`; detail=cooldown`; got != want {
		w.t.Errorf("Cache-Status = %s, want %s", got, want)
	}
}

// R99, R35, R49, C04, C56: a version that was published after a listing was read is not absent
// while the authority cools: 503 with what remains, for the file, the version, a tag, a package and
// the explanation. R87: what the listing knows is served.
func TestOldListingNeverSaysNo(t *testing.T) {
	for name, c := range kept {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.yaml, func(w *world) {
				w.withFacts()
				synctest.Wait()
				c.age(w, c.yaml)
				w.public.Publish("a", "2.0.0", longAgo, nil)
				w.public.Publish("new", "1.0.0", longAgo, nil)
				w.throttled("Retry-After", "600")
				time.Sleep(10 * time.Second)
				sent := w.public.Count()
				const file = "/npm/a/-/a-2.0.0.tgz"
				for _, path := range []string{file, "/npm/a/2.0.0", "/npm/a/next", "/npm/new", "/npm/new/1.0.0", "/npm/new/-/new-1.0.0.tgz"} {
					a := w.get(path)
					w.want(a, 503, 590)
					w.names(a, "registry.test:80", "registry")
				}
				w.want(w.do(http.MethodHead, file), 503, 590)
				for _, target := range []string{"npm:a@2.0.0", "npm:new"} {
					a := w.explained(target)
					w.want(a, 503, 590)
					if !strings.Contains(a.body, "unknown for now") || !strings.Contains(a.body, "try again in 590 seconds") {
						t.Errorf("explanation: %s", a.body)
					}
					w.names(a, "registry.test:80", "registry")
				}
				for _, path := range []string{"/npm/a", "/npm/a/1.0.0", "/npm/a/latest"} {
					w.want(w.get(path), 200, -1)
				}
				w.want(w.explained("npm:a@1.0.0"), 200, -1)
				w.sent(sent)
				w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(5 * time.Second); return false })
				time.Sleep(590 * time.Second)
				go w.get("/npm/probe")
				synctest.Wait()
				for _, path := range []string{file, "/npm/a/2.0.0", "/npm/a/next"} {
					a := w.get(path)
					w.want(a, 503, 1) // R65
					if !strings.Contains(a.body, "probe") {
						t.Errorf("during a probe: %s", a.body)
					}
				}
				time.Sleep(6 * time.Second)
				w.want(w.get(file), 200, -1)
				w.want(w.get("/npm/a/2.0.0"), 200, -1)
				w.want(w.get("/npm/a/next"), 404, -1)
				w.want(w.get("/npm/a/-/a-9.9.9.tgz"), 404, -1)
				w.want(w.explained("npm:a@9.9.9"), 404, -1)
			})
		})
	}
}

// R99: an absence that the upstream has just confirmed is one, also when the authority is throttled
// a moment later by another answer.
func TestFreshAbsence(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.withFacts()
		time.Sleep(time.Second)
		w.want(w.get("/npm/a/-/a-9.9.9.tgz"), 404, -1)
		w.want(w.get("/npm/a/9.9.9"), 404, -1)
		w.sent(1) // inside missTTL it is believed
		time.Sleep(5 * time.Second)
		w.want(w.get("/npm/a/9.9.9"), 404, -1)
		w.sent(2) // and then asked about, once for everybody
		w.want(w.get("/npm/a/-/a-9.9.9.tgz"), 404, -1)
		w.want(w.get("/npm/a/next"), 404, -1)
		w.sent(2)
	})
	inWorld(t, "", func(w *world) { // the package has gone since
		w.withFacts()
		time.Sleep(10 * time.Second)
		w.public.Always(http.StatusNotFound)
		w.want(w.get("/npm/a/9.9.9"), 404, -1)
		w.sent(2)
		w.want(w.get("/npm/a"), 404, -1)
	})
	inWorld(t, "", func(w *world) { // the authority is throttled while the document is on its way
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/a" {
				time.Sleep(2 * time.Second)
				return false
			}
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		done := make(chan answer)
		go func() { done <- w.get("/npm/a/9.9.9") }()
		synctest.Wait()
		w.want(w.get("/npm/trigger"), 503, 60)
		w.want(<-done, 404, -1)
		w.want(w.get("/npm/a/9.9.9"), 503, 58)
	})
}

// R40: what the rules say of a version that is known stays said while its authority cools; R99: a
// listing that holds nothing they admit may lack one that they would.
func TestDenialFromAnOldListing(t *testing.T) {
	for name, c := range kept {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.yaml, func(w *world) {
				w.withFacts()
				w.public.Publish("a", "2.0.0", time.Now(), nil)
				w.public.Publish("young", "1.0.0", time.Now(), nil)
				time.Sleep(time.Minute)
				w.want(w.get("/npm/a"), 200, -1)
				w.want(w.get("/npm/young"), 403, -1)
				synctest.Wait()
				c.age(w, c.yaml)
				w.throttled("Retry-After", "600")
				sent := w.public.Count()
				for _, path := range []string{"/npm/a/-/a-2.0.0.tgz", "/npm/a/2.0.0", "/npm/young/1.0.0", "/npm/young/-/young-1.0.0.tgz"} {
					a := w.get(path)
					w.want(a, 403, -1)
					if !strings.Contains(a.body, "min-age") || a.header.Get("Cache-Status") != "" {
						t.Errorf("%s: %v %s", path, a.header, a.body)
					}
				}
				if code, rows := w.explain("npm:a@2.0.0"); code != 200 || len(rows) != 1 || rows[0].Rule != "min-age" {
					t.Errorf("explained: %d %+v", code, rows)
				}
				w.want(w.get("/npm/young/next"), 503, 600)
				if strings.Contains(name, "time") || strings.Contains(name, "end") {
					w.want(w.get("/npm/young"), 403, -1) // the listing is current
				} else {
					w.want(w.get("/npm/young"), 503, 600)
				}
				w.sent(sent)
			})
		})
	}
}

// R92, R99, C01, C20, C55, tc-050: an upstream that fails says nothing of what an older listing
// lacks.
func TestTroubleIsNoAbsence(t *testing.T) {
	trouble := map[string]func(*world){
		"408": func(w *world) { w.public.Always(408) }, "500": func(w *world) { w.public.Always(500) },
		"502": func(w *world) { w.public.Always(502) }, "503": func(w *world) { w.public.Always(503) },
		"504": func(w *world) { w.public.Always(504) },
		"cut": func(w *world) {
			w.public.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		},
		"timeout": func(w *world) {
			w.public.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		},
		"no connection": func(w *world) { w.upstream.Close() },
	}
	for name, begin := range trouble {
		// inside its time, and after
		for _, age := range []time.Duration{10 * time.Second, 10 * time.Minute} {
			t.Run(name+" after "+age.String(), func(t *testing.T) {
				inWorld(t, "cache: {ttl: 9m, maxStale: 1h}", func(w *world) {
					w.withFacts()
					time.Sleep(age)
					w.public.Publish("a", "2.0.0", longAgo, nil)
					begin(w)
					for _, path := range []string{"/npm/a/-/a-2.0.0.tgz", "/npm/a/2.0.0", "/npm/a/next", "/npm/new", "/npm/new/-/new-1.0.0.tgz"} {
						a := w.get(path)
						w.want(a, 503, 1)
						if a.header.Get("Cache-Status") != "" || strings.Contains(a.body, "rate-limiting") {
							t.Errorf("%s is told of a cooldown: %v %s", path, a.header, a.body)
						}
					}
					w.want(w.explained("npm:a@2.0.0"), 503, 1)
					if w.state() != "open" {
						t.Errorf("state = %s", w.state())
					}
				})
			})
		}
	}
}

// R93, R99: while a private upstream fails that the mount can do without, what resolved says no for
// nobody: a private version may be there, and would win. R44: with two causes the longer wait
// counts. First-party names are the private upstream's alone.
func TestDegradedPrivateSideIsNoAbsence(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		inWorld(t, withPrivate+", firstParty: ['@acme/*'], privateFailure: degrade\ncache: {maxStale: 1h}", func(w *world) {
			w.public.Publish("a", "1.0.0", longAgo, nil)
			w.public.Publish("a", "2.0.0", time.Now(), nil)
			w.private.Always(status, "Retry-After", "20")
			absent := []string{
				"/npm/a/-/a-9.9.9.tgz", "/npm/a/9.9.9", "/npm/a/next", "/npm/absent", "/npm/absent/-/absent-1.0.0.tgz",
				"/npm/@acme/x", "/npm/@acme/x/1.0.0", "/npm/@acme/x/-/x-1.0.0.tgz",
			}
			denied := []string{"/npm/a/-/a-2.0.0.tgz", "/npm/a/2.0.0"}
			for _, path := range append(absent, denied...) {
				w.want(w.get(path), 503, 20)
			}
			for _, path := range []string{"/npm/a", "/npm/a/1.0.0", fileA} {
				w.want(w.get(path), 200, -1)
			}
			w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, ".tgz") {
					http.NotFound(rw, r)
				}
				return strings.HasSuffix(r.URL.Path, ".tgz")
			})
			w.want(w.get(fileA), 503, 20)
			time.Sleep(2 * time.Minute)
			w.throttled("Retry-After", "600")
			for _, path := range absent[:5] {
				a := w.get(path)
				w.want(a, 503, 600)
				w.names(a, "registry.test:80", "registry")
			}
			// the public side has nothing more to say
			for _, path := range append(absent[5:], denied...) {
				w.want(w.get(path), 503, 20)
			}
			w.private.Always(status, "Retry-After", "900")
			for _, path := range append(absent, denied...) {
				w.want(w.get(path), 503, 900)
			}
			w.want(w.get("/npm/a"), 200, -1)
		})
	}
}

// R39, R43, R99: what the private upstream says is fresh. Its versions and its absences stay what
// they are while the public side cools, and a version that it does not have may be the public
// side's.
func TestPrivateAnswersAreFresh(t *testing.T) {
	inWorld(t, withPrivate+", firstParty: ['@acme/*']\ncache: {maxStale: 0s}", func(w *world) {
		w.private.Publish("@acme/x", "1.0.0", time.Time{}, nil)
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		w.throttled("Retry-After", "600")
		for path, want := range map[string]struct{ status, wait int }{
			"/npm/@acme/x": {200, -1}, "/npm/@acme/x/1.0.0": {200, -1}, "/npm/@acme/x/-/x-1.0.0.tgz": {200, -1},
			"/npm/@acme/x/2.0.0": {404, -1}, "/npm/@acme/x/-/x-2.0.0.tgz": {404, -1}, "/npm/@acme/y": {404, -1},
			"/npm/a": {200, -1}, "/npm/a/1.0.0": {200, -1}, fileA: {200, -1},
			"/npm/a/2.0.0": {503, 600}, "/npm/a/next": {503, 600}, "/npm/a/-/a-2.0.0.tgz": {503, 600}, "/npm/b": {503, 600},
		} {
			w.want(w.get(path), want.status, want.wait)
		}
		w.sent(1)
	})
}

// R99, R30: the Python index's pages, files, companions and list of projects. R101: the index and
// the files host are told apart.
func TestOldPageNeverSaysNo(t *testing.T) {
	const (
		newer  = "/pypi/files/a/a-2.0-py3-none-any.whl"
		bare   = "/pypi/files/a/a-3.0-py3-none-any.whl"
		listed = `ecluse; hit; authority="index.test:80"; part=index; detail=cooldown`
	)
	for name, c := range kept {
		t.Run(name, func(t *testing.T) {
			inWorld(t, c.yaml, func(w *world) {
				w.publishA()
				w.pypi.Publish("a", fakepypi.Wheel("a", "3.0", fakepypi.UploadedAt(longAgo), fakepypi.WithoutCompanion()))
				w.want(w.get("/pypi/simple/a/"), 200, -1)
				w.want(w.get("/pypi/simple/"), 200, -1)
				synctest.Wait()
				c.age(w, c.yaml)
				w.pypi.Publish("a", fakepypi.Wheel("a", "2.0", fakepypi.UploadedAt(longAgo)), fakepypi.Wheel("a", "3.0", fakepypi.UploadedAt(longAgo)))
				w.pypi.Index.Always(http.StatusTooManyRequests, "Retry-After", "600")
				w.want(w.get("/pypi/simple/trigger/"), 503, 600)
				index := w.pypi.Index.Count()
				for _, path := range []string{newer, newer + ".metadata", bare + ".metadata", "/pypi/simple/new/", "/pypi/files/new/new-1.0-py3-none-any.whl"} {
					a := w.get(path)
					w.want(a, 503, 600)
					w.names(a, "index.test:80", "index")
				}
				for _, target := range []string{"pypi:a@2.0", "pypi:new"} {
					a := w.explained(target)
					w.want(a, 503, 600)
					w.names(a, "index.test:80", "index")
				}
				w.want(w.get(wheelA), 200, -1)
				w.want(w.get(wheelA+".metadata"), 200, -1)
				w.want(w.get(bare), 200, -1)
				a := w.get("/pypi/simple/")
				switch name {
				case "from before a start": // lists are not kept over a start
					w.want(a, 503, 600)
					w.names(a, "index.test:80", "index")
				case "retained":
					if w.want(a, 200, -1); a.header.Get("Cache-Status") != listed {
						t.Errorf("Cache-Status = %s", a.header.Get("Cache-Status"))
					}
				default:
					if w.want(a, 200, -1); a.header.Get("Cache-Status") != "" {
						t.Errorf("Cache-Status = %s", a.header.Get("Cache-Status"))
					}
				}
				if n := w.pypi.Index.Count(); n != index {
					t.Errorf("%d requests were sent", n-index)
				}
				w.pypi.Index.Answer(nil)
				time.Sleep(600 * time.Second)
				for _, path := range []string{newer, newer + ".metadata", bare + ".metadata"} {
					w.want(w.get(path), 200, -1)
				}
				w.want(w.get("/pypi/files/a/a-9.9-py3-none-any.whl"), 404, -1)
				w.pypi.Files.Always(http.StatusTooManyRequests, "Retry-After", "30")
				w.get(wheelA)
				a = w.get(newer)
				w.want(a, 503, 30)
				w.names(a, "files.test:80", "files")
				w.want(w.get("/pypi/files/a/a-9.9-py3-none-any.whl"), 404, -1) // the index says so
			})
		})
	}
}

// R92, R99, C55: trouble of the index is no absence of a file, a companion or a list; R93: nor is
// that of a private one.
func TestIndexTroubleIsNoAbsence(t *testing.T) {
	inWorld(t, "cache: {ttl: 9m, maxStale: 1h}", func(w *world) {
		w.publishA()
		w.want(w.get("/pypi/simple/a/"), 200, -1)
		w.want(w.get("/pypi/simple/"), 200, -1)
		time.Sleep(10 * time.Minute)
		w.pypi.Index.Always(http.StatusBadGateway)
		for _, path := range []string{"/pypi/files/a/a-2.0-py3-none-any.whl", wheelA[:len(wheelA)-7] + "any2.whl.metadata", "/pypi/simple/", "/pypi/simple/b/"} {
			w.want(w.get(path), 503, 1)
		}
	})
	inWorld(t, "pypi, private: 'http://"+ownHost+"/simple/', privateFailure: degrade\n", func(w *world) {
		w.publishA()
		w.pypiOwn.Index.Always(http.StatusServiceUnavailable, "Retry-After", "7")
		for _, path := range []string{"/pypi/simple/b/", "/pypi/files/a/a-2.0-py3-none-any.whl", "/pypi/files/b/b-2.0-py3-none-any.whl"} {
			w.want(w.get(path), 503, 7)
		}
		a := w.get("/pypi/simple/")
		if w.want(a, 200, -1); a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("an incomplete list may be kept: %v", a.header)
		}
		w.pypi.Index.Always(http.StatusNotFound)
		time.Sleep(2 * time.Minute)
		w.want(w.get("/pypi/simple/"), 503, 7)
		w.pypi.Index.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Type", pypiJSON)
			_, _ = rw.Write([]byte(`{"meta":{"api-version":"1.0"},"projects":[]}`))
			return true
		})
		w.want(w.get("/pypi/simple/"), 503, 7) // an empty list says no to all
		w.pypi.Index.Always(http.StatusNotFound)
		w.pypiOwn.Index.Always(http.StatusNotFound)
		time.Sleep(2 * time.Minute)
		w.want(w.get("/pypi/simple/"), 404, -1) // both say so
	})
}

// R89, R99: with a hold, who asks for what an older listing lacks waits for the recovery and hears
// what is true then.
func TestHoldBeforeAnAbsence(t *testing.T) {
	inWorld(t, "serve: {hold: 20s}\ncache: {maxStale: 1h}", func(w *world) {
		w.withFacts()
		time.Sleep(2 * time.Minute)
		w.public.Publish("a", "2.0.0", longAgo, nil)
		w.throttled("Retry-After", "15")
		start := time.Now()
		w.want(w.get("/npm/a/2.0.0"), 200, -1)
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("held for %v", d)
		}
	})
}

// R47, R99: facts of a version are no younger than the listing that they come from.
func TestFactsOfAnOldListing(t *testing.T) {
	inWorld(t, "cache: {maxStale: 1h}", func(w *world) {
		w.withFacts()
		time.Sleep(30 * time.Minute)
		w.throttled("Retry-After", "60")
		w.want(w.get(fileA), 503, 60)
		time.Sleep(time.Minute)
		w.sent(2)
		w.want(w.get(fileA), 200, -1)
		w.sent(4) // the listing and the file
	})
}

// R99: a document that an earlier process has read a moment ago says no to nobody: this process
// does not know of what may have been published before it began.
func TestKeptDocumentOfAMomentAgo(t *testing.T) {
	const yaml = "cache: {diskBytes: 1GiB}"
	inWorld(t, yaml, func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		synctest.Wait()
		w.public.Publish("a", "2.0.0", longAgo, nil)
		w.restart(yaml)
		w.want(w.get("/npm/a"), 200, -1)
		w.sent(1) // the document is kept, or nothing is proved below
		w.want(w.get("/npm/a/2.0.0"), 200, -1)
		w.want(w.get("/npm/a/3.0.0"), 404, -1) // it has been read by this process now
		w.sent(2)
	})
}
