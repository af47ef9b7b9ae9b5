package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

func openArchive(t *testing.T, dir string) *Archive {
	t.Helper()
	a := OpenArchive(ArchiveOptions{Path: dir, MaxBytes: 64 << 20})
	t.Cleanup(a.Close)
	return a
}

func keptBody(t *testing.T, a *Archive, name string) string {
	t.Helper()
	file, _, err := a.files.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	_, body, _ := strings.Cut(rest, "\n")
	return body
}

// A document that is dropped while it is written is given up before it is in place: no reader finds
// it between its last byte and its removal.
func TestDropGivesUpTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openArchive(t, t.TempDir())
		defer a.Close() // its writer belongs to the bubble
		a.mu.Lock()
		a.writing = "a" // as while its body is on its way
		a.mu.Unlock()
		go a.drop("a")
		synctest.Wait()
		if err := a.put(saving{name: "a", body: []byte("x")}, io.Discard); !errors.Is(err, errDropped) {
			t.Errorf("put: %v", err)
		}
		a.mu.Lock()
		a.writing = ""
		a.changed.Broadcast()
		a.mu.Unlock()
		synctest.Wait()
	})
}

// A document that is dropped does not come to the disk afterwards, wherever it was on its way
// there; what is offered later does.
func TestDroppedWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	a := openArchive(t, dir)
	body := bytes.Repeat([]byte("x"), 200_000)
	for i := range 300 {
		name := fmt.Sprintf("document-%d", i)
		a.offer(saving{name: name, body: body})
		for range i % 30 * 100 { // the writer is somewhere else each time
			runtime.Gosched()
		}
		a.drop(name)
		if a.files.Has(name) {
			t.Fatalf("%s is kept after it was dropped", name)
		}
	}
	a.offer(saving{name: "again", body: body})
	a.drop("again")
	a.offer(saving{name: "again", body: []byte("later")})
	a.Close()
	files, err := filepath.Glob(filepath.Join(dir, "*-*"))
	if err != nil || len(files) != 0 {
		t.Errorf("%q, %v", files, err)
	}
	if got := keptBody(t, openArchive(t, dir), "again"); got != "later" {
		t.Errorf("%.20q is kept", got)
	}
}

// Of a document that changes while it waits only the last is written, and no more wait than there
// is room for.
func TestArchiveQueue(t *testing.T) {
	a := &Archive{} // nobody writes
	a.changed.L = &a.mu
	for i := range 3 * archiveQueue {
		a.offer(saving{name: fmt.Sprint(i % (archiveQueue + 10)), body: fmt.Append(nil, i)})
	}
	if len(a.waiting) != archiveQueue {
		t.Fatalf("%d wait", len(a.waiting))
	}
	a.offer(saving{name: a.waiting[5].name, body: []byte("new")})
	last := a.waiting[len(a.waiting)-1]
	if len(a.waiting) != archiveQueue || string(last.body) != "new" {
		t.Errorf("%d wait, the last one is %q", len(a.waiting), last.body)
	}
}

// What waits when the archive closes is written; what comes later is not.
func TestArchiveCloses(t *testing.T) {
	dir := t.TempDir()
	a := openArchive(t, dir)
	for i := range 20 {
		a.offer(saving{name: fmt.Sprint(i), body: []byte("body")})
	}
	a.Close()
	a.offer(saving{name: "late", body: []byte("body")})
	a.Close()
	again := openArchive(t, dir)
	for i := range 20 {
		if keptBody(t, again, fmt.Sprint(i)) != "body" {
			t.Errorf("%d is lost", i)
		}
	}
	if again.files.Has("late") {
		t.Error("a closed archive keeps")
	}
}
