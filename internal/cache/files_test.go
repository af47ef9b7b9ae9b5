package cache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func openFiles(t *testing.T, dir string, max int64) *Files {
	t.Helper()
	f := OpenFiles(FilesOptions{Path: dir, MaxBytes: max, Proof: proofOf})
	// before the folder is removed: a fetch writes there after its readers have all
	t.Cleanup(func() { idle(t, f); _ = f.Close() })
	return f
}

// nameOf is the name of a content, and proofOf what a name says.
func nameOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func proofOf(name string) (hash.Hash, []byte, bool) {
	want, err := hex.DecodeString(name)
	return sha256.New(), want, err == nil && len(want) == sha256.Size
}

// idle waits for the end of all fetches.
func idle(t *testing.T, f *Files) {
	t.Helper()
	waitFor(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.active) == 0 })
}

// from opens a fetch of some bytes, in pieces when step is set; each piece waits for a word on
// step.
func from(content []byte, step chan struct{}, opens *atomic.Int32, check error) func(context.Context) (*Body, error) {
	return func(ctx context.Context) (*Body, error) {
		opens.Add(1)
		r, w := io.Pipe()
		go func() {
			for rest := content; len(rest) > 0; {
				n := min(len(rest), 10<<10)
				if step != nil {
					select {
					case <-step:
					case <-ctx.Done():
						w.CloseWithError(ctx.Err())
						return
					}
				}
				if _, err := w.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
			w.Close()
		}()
		return &Body{ReadCloser: r, Size: int64(len(content)), Check: func() error { return check }}, nil
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// R88, C59, C45: one fetch for many readers, who get bytes before the end; afterwards the kept file
// answers, also after a restart.
func TestFilesFetchOnce(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir, 1<<30)
	content := bytes.Repeat([]byte("0123456789"), 20<<10)
	step, opens := make(chan struct{}), &atomic.Int32{}
	open := from(content, step, opens, nil)
	var wg sync.WaitGroup
	first := make(chan struct{}, 10)
	for range 10 {
		wg.Go(func() {
			r, size, err := f.Fetch(t.Context(), nameOf(content), open)
			if err != nil || size != int64(len(content)) {
				t.Errorf("Fetch: %d, %v", size, err)
				return
			}
			defer r.Close()
			head := make([]byte, 1000)
			if _, err := io.ReadFull(r, head); err != nil {
				t.Errorf("head: %v", err)
			}
			first <- struct{}{}
			rest, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(append(head, rest...), content) {
				t.Errorf("a reader got %d bytes, %v", len(rest)+len(head), err)
			}
		})
	}
	for range 6 { // more than what is held back, less than all
		step <- struct{}{}
	}
	for range 10 {
		<-first
	}
	close(step)
	wg.Wait()
	if n := opens.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
	// only then may another store open the folder
	waitFor(t, func() bool { n, _ := f.Size(); return n == 1 })
	second := openFiles(t, dir, 1)
	if n, _ := second.Size(); n != 0 {
		t.Errorf("a second process has taken over %d files", n)
	}
	second.Close()
	for range 2 {
		store := f
		if n, size := store.Size(); n != 1 || size != int64(len(content)) {
			t.Errorf("%d files of %d bytes", n, size)
		}
		r, _, err := store.Fetch(t.Context(), nameOf(content), func(context.Context) (*Body, error) { return nil, errors.New("asked again") })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
			t.Errorf("kept: %d bytes, %v", len(got), err)
		}
		r.Close()
		f.Close()
		f = openFiles(t, dir, 1<<30)
	}
}

// R88: a reader that looked for the kept file just before a fetch of it ended, and comes just
// after, begins no second one.
func TestFilesLateReader(t *testing.T) {
	f := openFiles(t, t.TempDir(), 1<<30)
	var opens atomic.Int32
	content := []byte("content")
	open := from(content, nil, &opens, nil)
	r, _, err := f.Fetch(t.Context(), nameOf(content), open)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r)
	r.Close()
	idle(t, f)
	late := f.join(t.Context(), nameOf(content), open)
	defer late.Close()
	if got, err := io.ReadAll(late); err != nil || string(got) != "content" || opens.Load() != 1 {
		t.Errorf("%q, %v after %d fetches", got, err, opens.Load())
	}
}

// A store that is closed writes nothing any more: a file whose readers have all of it is kept
// before, and one that still comes is given up.
func TestFilesClose(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir, 1<<30)
	var opens atomic.Int32
	r, _, err := f.Fetch(t.Context(), "whole", from([]byte("content"), nil, &opens, nil))
	if err != nil {
		t.Fatal(err)
	}
	half, _, err := f.Fetch(t.Context(), "half", from(bytes.Repeat([]byte("x"), 200<<10), make(chan struct{}), &opens, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	_ = f.Close()
	if got := names(t, dir); len(got) != 1 || got[0] != "whole" || len(f.active) != 0 {
		t.Errorf("kept: %v, %d fetches", got, len(f.active))
	}
	if _, err := io.ReadAll(half); !errors.Is(err, context.Canceled) {
		t.Errorf("the other: %v", err)
	}
	if _, _, err := f.Fetch(t.Context(), "late", from(nil, nil, &opens, nil)); err == nil {
		t.Error("a closed store fetches")
	}
}

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// C29, C25: what is cut or wrong is not kept, and no reader gets its last piece.
func TestFilesKeepNothingWrong(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		check error
		cut   error
	}{"wrong": {100 << 10, errors.New("digest differs"), nil}, "small and wrong": {10, errors.New("digest differs"), nil}, "cut": {100 << 10, nil, io.ErrUnexpectedEOF}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := openFiles(t, dir, 1<<30)
			content := bytes.Repeat([]byte("x"), c.size)
			r, _, err := f.Fetch(t.Context(), "x", func(context.Context) (*Body, error) {
				body := io.Reader(bytes.NewReader(content))
				if c.cut != nil {
					body = io.MultiReader(bytes.NewReader(content[:c.size/2]), failing{c.cut})
				}
				return &Body{ReadCloser: io.NopCloser(body), Size: int64(c.size), Check: func() error { return c.check }}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			r.Close()
			if err == nil || len(got) >= c.size {
				t.Errorf("a reader got %d of %d bytes, %v", len(got), c.size, err)
			}
			waitFor(t, func() bool { return len(names(t, dir)) == 0 })
			if n, _ := f.Size(); n != 0 {
				t.Errorf("%d files kept", n)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// R69: one reader's abort hurts nobody; with the last one the fetch ends, and the next reader
// begins anew.
func TestFilesAbort(t *testing.T) {
	dir := t.TempDir()
	f := openFiles(t, dir, 1<<30)
	content := bytes.Repeat([]byte("x"), 200<<10)
	step, opens := make(chan struct{}), &atomic.Int32{}
	open := from(content, step, opens, nil)
	one, _, err := f.Fetch(t.Context(), "x", open)
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := f.Fetch(t.Context(), "x", open)
	if err != nil {
		t.Fatal(err)
	}
	one.Close()
	for range 4 {
		step <- struct{}{}
	}
	if _, err := io.ReadFull(two, make([]byte, 1000)); err != nil {
		t.Errorf("after the other's abort: %v", err)
	}
	two.Close()
	waitFor(t, func() bool { return len(names(t, dir)) == 0 })
	close(step)
	three, _, err := f.Fetch(t.Context(), "x", open)
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	if got, err := io.ReadAll(three); err != nil || len(got) != len(content) {
		t.Errorf("afterwards: %d bytes, %v", len(got), err)
	}
	if n := opens.Load(); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

// An error before the body goes to everyone who waited, and the next reader begins anew.
func TestFilesOpenError(t *testing.T) {
	f := openFiles(t, t.TempDir(), 1<<30)
	boom := errors.New("cooling")
	for range 2 {
		if _, _, err := f.Fetch(t.Context(), "x", func(context.Context) (*Body, error) { return nil, boom }); !errors.Is(err, boom) {
			t.Errorf("err = %v", err)
		}
	}
}

// The bound holds, the least recently used goes first, and what a crash or a stranger left does no
// harm.
func TestFilesBoundAndLeftovers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "123.part"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFiles(t, dir, 250)
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("leftovers: %v", got)
	}
	var opens atomic.Int32
	put := func(name string) {
		r, _, err := f.Fetch(t.Context(), name, from(bytes.Repeat([]byte(name), 100), nil, &opens, nil))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r)
		r.Close()
		idle(t, f)
	}
	put("a")
	put("b")
	put("a") // used again
	put("c")
	if got := names(t, dir); len(got) != 2 || got[0] != "a" || got[1] != "c" {
		t.Errorf("kept: %v", got)
	}
	if err := os.Truncate(filepath.Join(dir, "a"), 50); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Open("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a damaged file was handed out, or %v", err)
	}
}
