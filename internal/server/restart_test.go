package server

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// restart ends the gate and starts another on the same data folder.
func (w *world) restart(yaml string) {
	w.t.Helper()
	w.client.CloseIdleConnections()
	w.server.Close()
	w.start(yaml)
}

// A start begins with what the last process kept: inside the TTL nothing is asked, after it only a validator is sent, and while the
// authority cools the kept listing serves (R87) with the kept file (R88).
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
		w.restart(yaml) // the cooldown is forgotten (R32), the documents are not
		w.want(w.get("/npm/a"), 200, -1)
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
				w.server.Close()
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

// What was kept of one upstream says nothing about another: a gate that is pointed elsewhere asks there.
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
