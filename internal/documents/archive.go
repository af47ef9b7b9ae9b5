package documents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Archive keeps public documents on disk, so that a start does not begin with an empty memory: not
// with a listing read for every package, and not with nothing to serve while an authority cools. It
// is safe for concurrent use.
type Archive struct {
	files  *cache.Files
	report *obs.Store
	done   chan struct{} // closed when the writer has ended

	mu      sync.Mutex // guards all below
	changed sync.Cond  // any of it
	waiting []saving   // to be written, one of a name
	writing string     // the name of the one that is being written; empty for none
	dropped bool       // that one is no longer wanted
	closed  bool
}

type saving struct {
	name string
	head archived
	body []byte
}

// archived is the head of a kept document; its validators and its body are one file, so that they
// cannot part (C61). The file is the SHA-256 of all that follows in hexadecimal digits, the head in
// one line of JSON, and the body: a document that is not what was written is never believed.
type archived struct {
	Format      int       `json:"format"`
	Upstream    string    `json:"upstream"` // the address of the registry that said it
	Ecosystem   string    `json:"ecosystem"`
	Name        string    `json:"name"`
	ETag        string    `json:"etag"`
	ContentType string    `json:"content_type"`
	URL         string    `json:"url"`
	Fetched     time.Time `json:"fetched"`
}

const (
	archiveFormat = 2
	maxHeadLine   = 16 << 10
	sumLine       = 2*sha256.Size + 1
	// archiveQueue bounds the documents that wait to be written; one more is not kept. The next
	// read of it brings it again.
	archiveQueue = 64
)

// ArchiveOptions make an Archive.
type ArchiveOptions struct {
	Path     string
	MaxBytes int64
	// Report hears how the disk fares. It may be nil.
	Report *obs.Store
	// Around is for tests of failing disks.
	Around durable.Around
}

// OpenArchive opens the folder and starts its one writer; Close ends it.
func OpenArchive(o ArchiveOptions) *Archive {
	files := cache.OpenFiles(cache.FilesOptions{Path: o.Path, MaxBytes: o.MaxBytes, Report: o.Report, Around: o.Around})
	a := &Archive{files: files, report: o.Report, done: make(chan struct{})}
	a.changed.L = &a.mu
	go a.write()
	return a
}

// Close writes what waits and ends the writer. What is saved afterwards is dropped.
func (a *Archive) Close() {
	a.mu.Lock()
	closed := a.closed
	a.closed = true
	a.changed.Broadcast()
	a.mu.Unlock()
	if <-a.done; !closed {
		_ = a.files.Close() // the process ends anyway
	}
}

// offer hands a document to the writer, in place of an older one that waits, if there are not too
// many.
func (a *Archive) offer(s saving) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.withdraw(s.name)
	if a.closed || len(a.waiting) == archiveQueue {
		return
	}
	a.waiting = append(a.waiting, s)
	a.changed.Broadcast()
}

// withdraw takes back what waits under a name.
func (a *Archive) withdraw(name string) {
	for i := range a.waiting {
		if a.waiting[i].name == name {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			return
		}
	}
}

// drop removes a document, whether it is kept, waits or is being written. When it returns, nothing
// that was offered before comes to the disk any more.
func (a *Archive) drop(name string) {
	a.mu.Lock()
	a.withdraw(name)
	for a.writing == name {
		a.dropped = true
		a.changed.Wait()
	}
	a.mu.Unlock()
	a.files.Drop(name)
}

// write writes what is offered, one after the other, until the archive is closed and nothing waits.
func (a *Archive) write() {
	defer close(a.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		for len(a.waiting) == 0 {
			if a.closed {
				return
			}
			a.changed.Wait()
		}
		s := a.waiting[0]
		a.waiting = slices.Delete(a.waiting, 0, 1)
		a.writing, a.dropped = s.name, false
		a.mu.Unlock()
		// what cannot be kept is only read again
		if a.files.Put(s.name, func(w io.Writer) error { return a.put(s, w) }) == nil {
			a.files.Touch(s.name, s.head.Fetched)
		}
		a.mu.Lock()
		a.writing = ""
		a.changed.Broadcast()
	}
}

var errDropped = errors.New("the document was evicted")

func (a *Archive) put(s saving, w io.Writer) error {
	head, err := json.Marshal(s.head)
	if err != nil {
		return err
	}
	head = append(head, '\n')
	for _, part := range [][]byte{sumOf(head, s.body), head, s.body} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dropped {
		return errDropped
	}
	return nil
}

// sumOf is the first line of a kept document.
func sumOf(head, body []byte) []byte {
	h := sha256.New()
	_, _ = h.Write(head) // a hash does not fail
	_, _ = h.Write(body)
	return append(hex.AppendEncode(nil, h.Sum(nil)), '\n')
}
