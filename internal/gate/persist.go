package gate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// archiveName is where a document is kept. What one upstream says is never taken for another's
// word.
func (g *Gate) archiveName(name string) string {
	sum := sha256.Sum256([]byte(g.Ecosystem.Name + "\n" + g.Public.Base() + "\n" + name))
	return hex.EncodeToString(sum[:])
}

// save keeps a document for the next start.
func (g *Gate) save(name string, src registry.Source, e *entry) {
	if g.Archive == nil {
		return
	}
	head := archived{
		Format: archiveFormat, Ecosystem: g.Ecosystem.Name, Name: name, ETag: e.etag, ContentType: src.ContentType, Fetched: e.fetched,
	}
	if src.URL != nil {
		head.URL = src.URL.String()
	}
	g.Archive.offer(saving{g.archiveName(name), head, src.Body})
}

// touch notes that an upstream has confirmed a kept document.
func (g *Gate) touch(name string, at time.Time) {
	if g.Archive != nil {
		g.Archive.files.Touch(g.archiveName(name), at)
	}
}

// recall gives the kept document of a package, ready for use; nil when there is none. One that is
// packed is unpacked, and one that only the disk has is read, once for everybody who waits. Its age
// goes on from when an upstream last confirmed it.
func (g *Gate) recall(ctx context.Context, name string) *entry {
	kept, ok := g.documents.Get(g.docKey(name))
	switch {
	case ok && kept.doc != nil:
		return kept
	case !ok && !g.archived(name):
		return nil
	}
	e, err := g.restores.Do(ctx, name, func(context.Context) (*entry, error) { return g.revive(name) })
	if err != nil && ctx.Err() == nil {
		g.Logger.Warn("discarding an unusable cached document", obs.Ecosystem(g.Ecosystem.Name), obs.Package(name), obs.Err(err))
	}
	return e // nil with an error
}

// revive makes a kept document ready for use. It takes the place of its other form only: what came
// or went meanwhile is newer.
func (g *Gate) revive(name string) (*entry, error) {
	name = strings.Clone(name) // as in fetch
	key := g.docKey(name)
	kept, packed := g.documents.Get(key)
	if packed && kept.doc != nil {
		return kept, nil
	}
	var e *entry
	var err error
	if packed {
		e, err = g.Documents.unpack(key, kept)
	} else {
		e, err = g.load(name)
	}
	if err != nil {
		if !errors.Is(err, errUnopened) {
			g.forget(name)
		}
		return nil, err
	}
	g.documents.Swap(key, e, e.cost(), func(now *entry, ok bool) bool {
		return ok == packed && now == kept && (packed || g.archived(name))
	})
	if newer, ok := g.documents.Get(key); ok && newer.doc != nil {
		return newer, nil
	}
	return e, nil
}

// archived reports whether the disk has a document.
func (g *Gate) archived(name string) bool {
	return g.Archive != nil && g.Archive.files.Has(g.archiveName(name))
}

// forget drops a document in all its forms, the one on disk first: what revive takes from there, it
// keeps only while it is there.
func (g *Gate) forget(name string) {
	if g.Archive != nil {
		g.Archive.drop(g.archiveName(name))
	}
	g.documents.Delete(g.docKey(name))
}

// errUnopened says that a kept document cannot be opened. If it is there at all, it may be used
// later.
var errUnopened = errors.New("it cannot be opened")

func (g *Gate) load(name string) (*entry, error) {
	file, size, err := g.Archive.files.Open(g.archiveName(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, err)
	}
	defer file.Close()
	if size > maxDocument+maxHeadLine {
		return nil, fmt.Errorf("%w: %d bytes", registry.ErrTooLarge, size)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(file, maxHeadLine)
	head, length, err := readHead(r)
	if err != nil {
		return nil, fmt.Errorf("its head: %w", err)
	}
	if head.Format != archiveFormat || head.Ecosystem != g.Ecosystem.Name || head.Name != name {
		return nil, fmt.Errorf("it is %s:%s in format %d", head.Ecosystem, head.Name, head.Format)
	}
	src := registry.Source{ContentType: head.ContentType}
	if src.URL, err = url.Parse(head.URL); err != nil {
		return nil, err
	}
	src.Body = make([]byte, max(size-int64(length), 0))
	if _, err = io.ReadFull(r, src.Body); err != nil {
		return nil, err
	}
	doc, err := g.Ecosystem.Scan(g.pkg(name), src)
	if err != nil {
		return nil, err
	}
	e := &entry{
		doc: doc, etag: head.ETag, fetched: head.Fetched, checked: info.ModTime(), earlier: true, contentType: src.ContentType, url: src.URL,
		renderings: &renderings{},
	}
	if now := time.Now(); e.checked.After(now) { // a clock was set back
		e.checked, e.fetched = time.Time{}, time.Time{}
	}
	e.elsewhere = g.unreachable(name, doc)
	return e, nil
}

// readHead reads the first line of a kept document and tells its length.
func readHead(r *bufio.Reader) (head archived, length int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return archived{}, 0, err
	}
	err = json.Unmarshal(line, &head)
	return head, len(line), err
}
