package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

const withStore = "artifacts: {maxBytes: 1GiB}"

// keptFiles are the names in the store's folder.
func (w *world) keptFiles() []string {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dataDir, "artifacts"))
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// R88: a file that was fetched once and verified is served while its authority cools, under the
// same admission, with no request; HEAD and ranges too.
func TestKeptFileOutlivesACooldown(t *testing.T) {
	inWorld(t, withStore, func(w *world) {
		w.withFacts()
		w.want(w.get(fileA), 200, -1)
		synctest.Wait()
		w.throttled("Retry-After", "600")
		a := w.get(fileA)
		w.want(a, 200, -1)
		if a.body != string(fakenpm.File("a", "1.0.0")) || a.header.Get("Content-Encoding") != "" || !strings.Contains(a.header.Get("Cache-Control"), "no-transform") {
			t.Errorf("kept: %v", a.header)
		}
		head := w.do(http.MethodHead, fileA)
		w.want(head, 200, -1)
		if head.header.Get("Content-Length") != a.header.Get("Content-Length") {
			t.Errorf("HEAD: %v", head.header)
		}
		part := w.get(fileA, "Range", "bytes=0-3")
		if part.status != http.StatusPartialContent || part.body != "tarb" {
			t.Errorf("range: %d %q", part.status, part.body)
		}
		w.sent(3)
		w.app.Reload(w.t.Context(), w.config("rules: {ban: {type: DenyByIdentity, packages: [a]}}"), nil)
		w.want(w.get(fileA), 403, -1)
	})
}

// C59: any number of clients, one transfer; each gets bytes before the end; the first one's abort
// hurts nobody.
func TestOneTransferForManyClients(t *testing.T) {
	inWorld(t, withStore, func(w *world) {
		w.withFacts()
		file := fakenpm.File("a", "1.0.0")
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			_, _ = rw.Write(file[:len(file)/2])
			_ = http.NewResponseController(rw).Flush()
			time.Sleep(10 * time.Second)
			_, _ = rw.Write(file[len(file)/2:])
			return true
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				a := w.get(fileA)
				w.want(a, 200, -1)
				if a.body != string(file) {
					t.Error("a client got another file")
				}
			})
		}
		wg.Wait()
		w.sent(2)
		synctest.Wait()
		if n := len(w.keptFiles()); n != 1 {
			t.Errorf("%d files kept", n)
		}
	})
}

// R50, R51, R52 with a shared transfer: the throttled answer is handed to one client, the others
// hear of the cooldown.
func TestSharedTransferThrottled(t *testing.T) {
	inWorld(t, withStore, func(w *world) {
		w.withFacts()
		w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "60")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		var mu sync.Mutex
		var wg sync.WaitGroup
		got := map[int]int{}
		for range 20 {
			wg.Go(func() {
				a := w.get(fileA)
				mu.Lock()
				defer mu.Unlock()
				got[a.status]++
				if a.header.Get("Retry-After") != "60" {
					t.Errorf("%d: %v", a.status, a.header)
				}
			})
		}
		wg.Wait()
		if got[429] != 1 || got[503] != 19 {
			t.Errorf("statuses = %v", got)
		}
		w.sent(2)
	})
}

// C25, C29: what is cut or wrong is neither delivered as whole nor kept.
func TestWrongFileIsNotKept(t *testing.T) {
	inWorld(t, withStore, func(w *world) {
		w.withFacts()
		file := fakenpm.File("a", "1.0.0")
		for name, answer := range map[string]func(http.ResponseWriter){
			"wrong": func(rw http.ResponseWriter) { _, _ = rw.Write(append([]byte("X"), file[1:]...)) },
			"small": func(rw http.ResponseWriter) { _, _ = rw.Write([]byte("<html>")) },
			"cut": func(rw http.ResponseWriter) {
				_, _ = rw.Write(file[:len(file)/2])
				_ = http.NewResponseController(rw).Flush()
				panic(http.ErrAbortHandler)
			},
		} {
			w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool { answer(rw); return true })
			if a := w.get(fileA); a.err == nil && a.status == 200 {
				t.Errorf("%s: %d bytes were taken for whole", name, len(a.body))
			}
			synctest.Wait()
			if kept := w.keptFiles(); len(kept) != 0 {
				t.Errorf("%s: kept %v", name, kept)
			}
		}
		w.public.Answer(nil)
		w.want(w.get(fileA), 200, -1)
	})
}

// rw-003: a download that breaks off, however its length is told, is a broken transfer for the
// client and is not kept; the next try is whole.
func TestBrokenDownloadIsNotKept(t *testing.T) {
	file := fakenpm.File("a", "1.0.0")
	for name, head := range map[string]string{
		"Content-Length":  fmt.Sprintf("Content-Length: %d\r\n\r\n", len(file)),
		"chunked":         fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(file)),
		"close-delimited": "Connection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, withStore, func(w *world) {
				w.withFacts()
				w.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
					conn, _, err := http.NewResponseController(rw).Hijack()
					if err != nil {
						t.Error(err)
						return true
					}
					defer conn.Close()
					_, _ = conn.Write(append([]byte("HTTP/1.1 200 OK\r\n"+head), file[:len(file)/2]...))
					return true
				})
				if a := w.get(fileA); a.status == 200 && a.err == nil {
					t.Errorf("%d bytes were taken for whole", len(a.body))
				}
				synctest.Wait()
				if kept := w.keptFiles(); len(kept) != 0 {
					t.Errorf("kept %v", kept)
				}
				w.public.Answer(nil)
				if a := w.get(fileA); a.status != 200 || a.err != nil || a.body != string(file) {
					t.Errorf("afterwards: %d, %d bytes, %v", a.status, len(a.body), a.err)
				}
			})
		})
	}
}

// R88: a private file is never stored.
func TestPrivateFileIsNotKept(t *testing.T) {
	inWorld(t, withPrivate+"\n"+withStore, func(w *world) {
		w.private.Publish("a", "1.0.0", time.Time{}, nil)
		w.want(w.get(fileA), 200, -1)
		synctest.Wait()
		if kept := w.keptFiles(); len(kept) != 0 {
			t.Errorf("kept %v", kept)
		}
	})
}
