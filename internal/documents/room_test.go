package documents

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Documents of inRoom, and the room for all of them.
const (
	textBytes = 600_000
	roomBytes = 1 << 20
)

// inRoom runs a test of documents that come packed, a hundredth of their size, and are not kept.
// Most tells how much has been at work at once.
func inRoom(t *testing.T, test func(t *testing.T, d *Documents, most func() int64)) {
	t.Helper()
	toy.Inside(t, func(t *testing.T, w *toy.World) {
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Encoding", "gzip")
			zw := gzip.NewWriter(rw)
			_, _ = fmt.Fprintf(zw, `{"versions":{},"pad":%q}`, strings.Repeat("x", textBytes))
			_ = zw.Close()
			return true
		})
		o := options(w)
		o.Room, o.Memory = quota.New(roomBytes, 15*time.Second), NewMemory(1)
		scan := o.Protocol.Scan
		var mu sync.Mutex
		var most int64
		o.Protocol.Scan = func(p registry.Package, src registry.Source) (registry.Document, error) {
			mu.Lock()
			most = max(most, o.Room.Used())
			mu.Unlock()
			return scan(p, src)
		}
		test(t, New(o), func() int64 { mu.Lock(); defer mu.Unlock(); return most })
		if n := o.Room.Used(); n != 0 {
			t.Errorf("%d bytes were not given back", n)
		}
		o.Memory.Close()
	})
}

// request reads a document and needs it for so long.
func request(ctx context.Context, d *Documents, name string, need time.Duration) error {
	var scope quota.Scope
	defer scope.End()
	_, err := d.Get(quota.With(ctx, &scope), name, 0)
	time.Sleep(need)
	return err
}

// Issue 13: twelve clients with twelve names whose documents unpack to a hundred times what is sent
// take what the room has and one document beyond it; all are answered in the end.
func TestTwelveLargeDocumentsInASmallRoom(t *testing.T) {
	inRoom(t, func(t *testing.T, d *Documents, most func() int64) {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if err := request(t.Context(), d, fmt.Sprint("n", i), time.Second); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := most(); n > roomBytes+2*textBytes+exchange || n < 2*textBytes {
			t.Errorf("%d bytes were at work at once", n)
		}
		if took := time.Since(start); took < 6*time.Second {
			t.Errorf("%v for all: they did not wait for each other", took)
		}
	})
}

// Issue 13: a document that finds no room for too long is refused with a time, and read when there
// is some; callers who share a read share the room, until the last of them needs it no longer.
func TestNoRoomForTooLong(t *testing.T) {
	inRoom(t, func(t *testing.T, d *Documents, _ func() int64) {
		var wg sync.WaitGroup
		for _, need := range []time.Duration{time.Second, 20 * time.Second, time.Second} {
			wg.Go(func() {
				if err := request(t.Context(), d, "a", need); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		start := time.Now()
		err := request(t.Context(), d, "c", 0)
		wait, ok := errors.AsType[*refusal.Unavailable](err)
		if !ok || wait.RetryAfter() != 5 || wait.Cooldown || !strings.Contains(wait.Error(), "cache.maxFetching") || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		wg.Wait()
		if err := request(t.Context(), d, "c", 0); err != nil {
			t.Error(err)
		}
	})
}

// A document that is unpacked in memory, or read from the disk, takes of the room as well; one that
// finds none stays where it is.
func TestRevivedDocumentsTakeRoom(t *testing.T) {
	inRoom(t, func(t *testing.T, d *Documents, most func() int64) {
		d.opts.Memory.Close()
		d.opts.Memory = NewMemory(64 << 20)
		if err := request(t.Context(), d, "a", 0); err != nil {
			t.Fatal(err)
		}
		kept, _ := d.opts.Memory.store.Get(d.key("a"))
		packed, cost, ok := d.opts.Memory.pack(kept)
		if !ok {
			t.Fatal("it cannot be packed")
		}
		d.opts.Memory.store.Swap(d.key("a"), packed, cost, func(*Document, bool) bool { return true })
		full, err := d.opts.Room.Take(t.Context(), roomBytes)
		if err != nil {
			t.Fatal(err)
		}
		if e := d.recall(t.Context(), "a"); e != nil {
			t.Error("unpacked without room")
		}
		full.Release()
		if e := d.recall(t.Context(), "a"); e == nil || e.Document == nil || most() < 2*textBytes {
			t.Errorf("%v, and %d bytes at work", e, most())
		}
	})
}
