package app

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/mirror"
)

// faulty is a gate with all of its stores, one of which meets one fault.
type faulty struct {
	*world
	house *house
	store string

	failing  atomic.Pointer[error] // what the disk says to each step; nil: it works
	stop     func()                // ends the gate
	pause    time.Duration         // after which listings and advisories are read again
	packages int                   // that clients have asked for

	requests, wrong, refused int
	problems                 []string
}

const faultyConfig = "cache: {ttl: 10s, maxStale: 720h}\nartifacts: {maxBytes: 1GiB}\n" +
	"advisories: {source: 'http://registry.test:80/osv/{ecosystem}.zip', interval: 1h}\n" +
	"rules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}"

// newFaulty publishes one version that may be served, one with an advisory and one that is too
// young.
func newFaulty(w *world, h *house, store string) *faulty {
	f := &faulty{world: w, house: h, store: store, pause: 61 * time.Minute}
	if store == "mirror" {
		f.pause = 15 * time.Second
	}
	var export bytes.Buffer
	zw := zip.NewWriter(&export)
	file, err := zw.Create("GHSA-test-0001.json")
	if err != nil {
		w.t.Fatal(err)
	}
	_, _ = io.WriteString(file, badAdvisory)
	_ = zw.Close()
	// new data each hour
	edition := func() string { return fmt.Sprintf("%q", time.Now().Format("02T15")) }
	w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/osv/"):
			return false
		case r.URL.Path != "/osv/npm.zip":
			rw.WriteHeader(http.StatusForbidden)
		case r.Header.Get("If-None-Match") == edition():
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("ETag", edition())
			_, _ = rw.Write(export.Bytes())
		}
		return true
	})
	w.public.Publish("a", "0.9.0", longAgo, nil)
	w.public.Publish("a", "1.0.0", longAgo, nil) // has the advisory
	w.public.Publish("a", "2.0.0", time.Now().Add(20*24*time.Hour), nil)
	w.around = func(store string) durable.Around {
		return func(_ durable.Step, _ string, call func() error) error {
			if err := f.failing.Load(); err != nil && store == f.store {
				return *err
			}
			return call()
		}
	}
	return f
}

// begin starts the gate on what is there, with what it does in the background.
func (f *faulty) begin() {
	f.t.Helper()
	f.start(withHouse + faultyConfig)
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.app.RunAdvisories(ctx) }()
	f.stop = func() {
		cancel()
		<-done
		f.client.CloseIdleConnections()
		f.app.Close()
	}
	if f.store == "mirror" {
		f.beginQueue()
	}
	time.Sleep(time.Second) // the advisories are read
}

// beginQueue connects the gate to its mirror. Only the mirror's own rows have one: its polling
// takes long in virtual time.
func (f *faulty) beginQueue() {
	f.t.Helper()
	queue, err := mirror.Begin(f.t.Context(), mirror.ServiceOptions{
		Lanes: f.app.Lanes(), DataDir: f.dataDir, Work: true, Patient: true, Metrics: f.app.Metrics(), Logger: f.app.Logger(), VirtualTime: true,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.app.SetMirror(queue.Offer, queue.Status)
	stop := f.stop
	f.stop = func() {
		queue.Stop(context.WithoutCancel(f.t.Context()))
		stop()
	}
}

// judge counts an answer: right, wrong although it is a whole one, or a refusal of what is there.
func (f *faulty) judge(what string, a answer, status int, right bool) {
	f.requests++
	switch {
	case a.status == status && a.err == nil && right:
		return
	case a.status == http.StatusOK && a.err == nil:
		f.wrong++
	default:
		f.refused++
	}
	f.problems = append(f.problems, fmt.Sprintf("%s: %d, %d bytes, %v, %.100s", what, a.status, len(a.body), a.err, a.body))
}

// known asks for what was asked for before.
func (f *faulty) known() {
	list := f.get("/npm/a")
	f.judge("listing", list, 200, list.status == 200 && strings.Contains(list.body, `"0.9.0":{`) && !strings.Contains(list.body, `"1.0.0":{`) && !strings.Contains(list.body, `"2.0.0":{`))
	file := f.get("/npm/a/-/a-0.9.0.tgz")
	f.judge("file", file, 200, file.body == string(fakenpm.File("a", "0.9.0")))
	f.judge("file with an advisory", f.get("/npm/a/-/a-1.0.0.tgz"), 403, true)
	f.judge("young file", f.get("/npm/a/-/a-2.0.0.tgz"), 403, true)
	head := f.do(http.MethodHead, "/npm/a/-/a-0.9.0.tgz")
	f.judge("HEAD", head, 200, head.header.Get("Content-Length") == fmt.Sprint(len(file.body)))
}

// round asks for that, and for a package that is new.
func (f *faulty) round() {
	f.known()
	name := fmt.Sprintf("n%d", f.packages)
	f.packages++
	f.public.Publish(name, "1.0.0", longAgo, nil)
	list := f.get("/npm/" + name)
	f.judge("new listing", list, 200, strings.Contains(list.body, `"1.0.0":{`))
	file := f.get("/npm/" + name + "/-/" + name + "-1.0.0.tgz")
	f.judge("new file", file, 200, file.body == string(fakenpm.File(name, "1.0.0")))
}

// damagesOf are what may happen to the content of files behind our back.
var damagesOf = map[string]func(content, other []byte) []byte{
	"flip":      func(c, _ []byte) []byte { c[len(c)/3] ^= 1; c[2*len(c)/3] ^= 1; return c },
	"zero":      func(c, _ []byte) []byte { clear(c); return c },
	"exchange":  func(_, other []byte) []byte { return other },
	"cut":       func(c, _ []byte) []byte { return c[:len(c)/2] },
	"last byte": func(c, _ []byte) []byte { c[len(c)-1] ^= 1; return c },
	"doubled":   func(c, _ []byte) []byte { return append(c, c...) },
}

// damage does it to all files of the store.
func (f *faulty) damage(fault string) {
	f.t.Helper()
	dir := filepath.Join(f.dataDir, f.store)
	if fault == "removed" {
		if err := os.RemoveAll(dir); err != nil {
			f.t.Fatal(err)
		}
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	var contents [][]byte
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			f.t.Fatal(err)
		}
		if len(content) > 0 && !strings.HasSuffix(e.Name(), "-shm") && !strings.HasSuffix(e.Name(), "-wal") {
			names, contents = append(names, e.Name()), append(contents, content)
		}
	}
	for i, name := range names {
		other := contents[(i+1)%len(contents)]
		if len(contents) == 1 {
			other = []byte(strings.Repeat("another\n", len(other)/8))
		}
		// as its owner would change it
		if err := os.WriteFile(filepath.Join(dir, name), damagesOf[fault](bytes.Clone(contents[i]), other), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	if len(names) == 0 {
		f.t.Fatalf("nothing is kept in %s", dir)
	}
}

// fail makes the disk below the store fail, or work again. SQLite calls the system itself; for the
// queue, the database refuses to take anything.
func (f *faulty) fail(err error) {
	f.t.Helper()
	if f.store != "mirror" {
		if err == nil {
			f.failing.Store(nil)
		} else {
			f.failing.Store(&err)
		}
		return
	}
	db, oerr := sql.Open("sqlite", "file:"+filepath.Join(f.dataDir, "mirror", "queue.db")+"?_pragma=busy_timeout(10000)")
	if oerr != nil {
		f.t.Fatal(oerr)
	}
	defer db.Close()
	statement := "DROP TRIGGER full"
	if err != nil {
		statement = "CREATE TRIGGER full BEFORE INSERT ON river_job BEGIN SELECT RAISE(ABORT, '" + err.Error() + "'); END"
	}
	if _, err := db.ExecContext(f.t.Context(), statement); err != nil {
		f.t.Fatal(err)
	}
}

var diskFaults = map[string]error{"ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS, "EIO": syscall.EIO}

// meet lets the store meet a fault, in the process that keeps it or before the next start.
func (f *faulty) meet(fault string, started bool) (healed bool) {
	f.t.Helper()
	f.stopFirst()
	f.begin()
	f.round()
	time.Sleep(5 * time.Second)
	if started {
		f.stop()
	}
	if err := diskFaults[fault]; err != nil {
		f.fail(err)
	} else {
		f.damage(fault)
	}
	if started {
		f.begin()
	}
	for range 3 {
		f.round()
		time.Sleep(f.pause)
	}
	if diskFaults[fault] != nil {
		f.fail(nil)
	}
	f.round()
	time.Sleep(f.pause)
	f.round()
	f.stop() // what memory hides of the disk is found by a start
	f.begin()
	f.round()
	time.Sleep(5 * time.Second) // not so long that the listings are old
	// what is kept now is enough for a start without any upstream
	f.stop()
	f.public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusInternalServerError)
		return true
	})
	f.begin()
	before := f.wrong + f.refused
	f.known()
	time.Sleep(5 * time.Second)
	f.stop()
	return f.wrong+f.refused == before && (f.store != "mirror" || f.house.stored() == f.packages+1)
}

// stopFirst ends the gate that the world began with.
func (f *faulty) stopFirst() {
	f.client.CloseIdleConnections()
	f.app.Close()
}

// rw-001, rw-004, rw-006, rw-010: no store that meets a fault makes a wrong answer, or a refusal of
// what the upstream has, and each heals without a person: what it keeps afterwards is enough for a
// start without an upstream, and every file that was taken is in the mirror.
func TestStoresMeetFaults(t *testing.T) {
	var table []string
	for _, store := range []string{"artifacts", "documents", "advisories", "mirror"} {
		for _, fault := range []string{"flip", "zero", "exchange", "cut", "last byte", "doubled", "ENOSPC", "EROFS", "EIO", "removed"} {
			for _, started := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/started=%t", store, fault, started), func(t *testing.T) {
					inHouse(t, faultyConfig, func(w *world, h *house) {
						f := newFaulty(w, h, store)
						healed := f.meet(fault, started)
						damaged := w.metric(`ecluse_store_damaged_total{store="` + store + `"}`)
						table = append(table, fmt.Sprintf("%-10s  %-9s  %-12s  %8d  %5d  %7d  %6t  %7d", store, fault,
							map[bool]string{false: "same process", true: "after start"}[started], f.requests, f.wrong, f.refused, healed, h.stored()))
						if f.wrong+f.refused > 0 || !healed {
							t.Errorf("%d wrong, %d refused, healed: %t, %d of %d files mirrored, %v damaged\n%s\n%s", f.wrong, f.refused, healed, h.stored(), f.packages+1, damaged,
								strings.Join(f.problems, "\n"), w.log.String())
						}
						synctest.Wait()
					})
				})
			}
		}
	}
	t.Logf("%-10s  %-9s  %-12s  %8s  %5s  %7s  %6s  %7s\n%s", "store", "fault", "when", "requests", "wrong", "refused", "healed", "mirrored", strings.Join(table, "\n"))
}
