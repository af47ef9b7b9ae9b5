package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// restart ends the gate and starts another on the same data folder.
func (w *world) restart(yaml string) {
	w.t.Helper()
	w.client.CloseIdleConnections()
	w.app.Close()
	w.start(yaml)
}

// A start begins with what the last process kept: inside the TTL nothing is asked, after it only a
// validator is sent, and while the authority cools the kept listing serves (R87) with the kept file
// (R88).
func TestRestartKeepsDocumentsAndFiles(t *testing.T) {
	yaml := "cache: {maxStale: 1h}\n" + withStore
	inWorld(t, yaml, func(w *world) {
		w.withFacts()
		w.want(w.get(fileA), 200, -1)
		synctest.Wait()
		w.restart(yaml)
		w.want(w.get("/npm/a"), 200, -1)
		w.want(w.get(fileA), 200, -1)
		w.sent(2)
		time.Sleep(2 * time.Minute)
		w.want(w.get("/npm/a"), 200, -1)
		w.sent(3)
		if w.public.Seen()[2].Header.Get("If-None-Match") == "" {
			t.Error("the validator was not sent")
		}
		w.restart(yaml) // the confirmation was kept as well
		w.want(w.get("/npm/a"), 200, -1)
		w.sent(3)
		time.Sleep(2 * time.Minute)
		w.throttled("Retry-After", "600")
		w.want(w.get("/npm/a"), 200, -1)
		w.want(w.get(fileA), 200, -1)
		w.sent(4)
		w.restart(yaml) // the cooldown is kept (R100), and so are the documents
		w.want(w.get("/npm/a"), 200, -1)
		w.sent(4)
	})
}

// R100, R36: the gate that meets a 429 is dropped; the next one over the same folder sends nothing
// until the deadline, answers with what remains of it, shows it from its start, and then sends one
// probe, whose success is kept as well.
func TestRestartKeepsCooldowns(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.throttled("Retry-After", "60")
		time.Sleep(10 * time.Second)
		w.restart("")
		if a := w.authorities(); len(a) != 1 || a[0].Host != publicHost || a[0].State != "cooling" || a[0].Remaining != 50 {
			t.Errorf("at the start: %+v", a)
		}
		if lines := w.lines("cooldown taken over from the data folder"); len(lines) != 1 || lines[0]["upstream_host"] != publicHost ||
			lines[0]["upstream_port"] != 80.0 || lines[0]["delay_seconds"] != 50.0 {
			t.Errorf("log: %v", lines)
		}
		w.want(w.get("/npm/a"), 503, 50)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 503, 50)
		time.Sleep(50*time.Second - 1)
		w.restart("")
		w.want(w.get("/npm/a"), 503, 1)
		w.sent(1)
		time.Sleep(time.Nanosecond)
		if got := w.state(); got != "due" {
			t.Errorf("state = %s", got)
		}
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(5 * time.Second); return false })
		var clients sync.WaitGroup
		clients.Go(func() { w.want(w.get("/npm/a"), 200, -1) })
		synctest.Wait()
		for range 20 {
			clients.Go(func() { w.want(w.get("/npm/other"), 503, 1) })
		}
		clients.Wait()
		w.sent(2)
		w.public.Answer(nil)
		w.restart("")
		if a := w.authorities(); len(a) != 0 {
			t.Errorf("after the recovery: %+v", a)
		}
		w.want(w.get("/npm/other"), 404, -1)
		w.sent(3)
	})
}

// R100: of two gates at work over one folder, each learns of the other's cooldowns before it sends.
func TestCooldownsOfAGateBeside(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("b", "1.0.0", longAgo, nil)
		gate := w.app
		w.start("") // in its place, as far as clients go
		w.want(w.get("/npm/a"), 200, -1)
		defer gate.Close()
		ask := func(s *App) answer {
			rec := httptest.NewRecorder()
			s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/npm/b", nil))
			return answer{status: rec.Code, header: rec.Header(), body: rec.Body.String()}
		}
		w.throttled("Retry-After", "30")
		w.want(ask(gate), 503, 30)
		w.sent(2)
		time.Sleep(30 * time.Second)
		w.public.Always(http.StatusTooManyRequests, "Retry-After", "40")
		ask(gate) // its probe
		w.public.Answer(nil)
		w.want(w.get("/npm/b"), 503, 40)
		w.sent(3)
	})
}

// R32: without a data folder nothing is kept.
func TestNothingIsKeptWithoutAFolder(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		if err := os.Remove(w.dataDir); err != nil {
			t.Fatal(err)
		}
		w.throttled("Retry-After", "60")
		w.restart("")
		w.want(w.get("/npm/a"), 200, -1)
		if _, err := os.Stat(w.dataDir); !os.IsNotExist(err) {
			t.Errorf("a folder was made: %v", err)
		}
	})
}

// What a crash or a stranger left in the folder is removed and read again, never served.
func TestDamagedDocumentIsReadAgain(t *testing.T) {
	yaml := "cache: {maxStale: 1h}"
	for name, damage := range map[string]func(path string, content []byte) error{
		"cut":     func(path string, content []byte) error { return os.WriteFile(path, content[:len(content)-10], 0o600) },
		"empty":   func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"no head": func(path string, _ []byte) error { return os.WriteFile(path, []byte("junk\n{}"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, yaml, func(w *world) {
				w.withFacts()
				w.client.CloseIdleConnections()
				w.app.Close()
				folder := filepath.Join(w.dataDir, "documents")
				entries, err := os.ReadDir(folder)
				if err != nil || len(entries) != 1 {
					t.Fatalf("%v, %v", entries, err)
				}
				path := filepath.Join(folder, entries[0].Name())
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(path, content); err != nil {
					t.Fatal(err)
				}
				w.start(yaml)
				w.want(w.get("/npm/a"), 200, -1)
				w.sent(2)
			})
		})
	}
}

// What was kept of one upstream says nothing about another: a gate that is pointed elsewhere asks
// there.
func TestKeptDocumentsBelongToTheirUpstream(t *testing.T) {
	yaml := "cache: {maxStale: 1h}"
	inWorld(t, yaml, func(w *world) {
		w.withFacts()
		w.private.Publish("a", "7.0.0", longAgo, nil)
		w.restart(", public: 'http://" + privateHost + "/'\n" + yaml)
		if vs := w.versions(w.get("/npm/a")); len(vs) != 1 || vs["7.0.0"] == nil {
			t.Errorf("served %v", vs)
		}
		w.restart(yaml)
		if vs := w.versions(w.get("/npm/a")); len(vs) != 1 || vs["1.0.0"] == nil {
			t.Errorf("served %v", vs)
		}
		w.sent(1)
	})
}
