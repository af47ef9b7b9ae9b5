package documents

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
func (d *Documents) archiveName(name string) string {
	sum := sha256.Sum256([]byte(d.opts.Protocol.Name + "\n" + d.opts.Public.Base() + "\n" + name))
	return hex.EncodeToString(sum[:])
}

// save keeps a document for the next start.
func (d *Documents) save(src registry.Source, e *Document) {
	if d.opts.Archive == nil {
		return
	}
	head := archived{
		Format: archiveFormat, Ecosystem: d.opts.Protocol.Name, Name: e.name, ETag: e.etag, ContentType: src.ContentType, Fetched: e.fetched,
	}
	if src.URL != nil {
		head.URL = src.URL.String()
	}
	d.opts.Archive.offer(saving{d.archiveName(e.name), head, src.Body})
}

// touch notes that an upstream has confirmed a kept document.
func (d *Documents) touch(name string, at time.Time) {
	if d.opts.Archive != nil {
		d.opts.Archive.files.Touch(d.archiveName(name), at)
	}
}

// recall gives the kept document of a package, ready for use; nil when there is none. One that is
// packed is unpacked, and one that only the disk has is read, once for everybody who waits. Its age
// goes on from when an upstream last confirmed it.
func (d *Documents) recall(ctx context.Context, name string) *Document {
	kept, ok := d.opts.Memory.store.Get(d.key(name))
	switch {
	case ok && kept.Document != nil:
		return kept
	case !ok && !d.archived(name):
		return nil
	}
	e, err := d.restores.Do(ctx, name, func(context.Context) (*Document, error) { return d.revive(name) })
	if err != nil && ctx.Err() == nil {
		d.opts.Logger.Warn("discarding an unusable cached document", obs.Ecosystem(d.opts.Protocol.Name), obs.Package(name), obs.Err(err))
	}
	return e // nil with an error
}

// revive makes a kept document ready for use. It takes the place of its other form only: what came
// or went meanwhile is newer.
func (d *Documents) revive(name string) (*Document, error) {
	name = strings.Clone(name) // as in fetch
	key := d.key(name)
	kept, packed := d.opts.Memory.store.Get(key)
	if packed && kept.Document != nil {
		return kept, nil
	}
	var e *Document
	var err error
	if packed {
		e, err = d.opts.Memory.unpack(kept)
	} else {
		e, err = d.load(name)
	}
	if err != nil {
		if !errors.Is(err, errUnopened) {
			d.forget(name)
		}
		return nil, err
	}
	d.opts.Memory.store.Swap(key, e, e.cost(), func(now *Document, ok bool) bool {
		return ok == packed && now == kept && (packed || d.archived(name))
	})
	if newer, ok := d.opts.Memory.store.Get(key); ok && newer.Document != nil {
		return newer, nil
	}
	return e, nil
}

// archived reports whether the disk has a document.
func (d *Documents) archived(name string) bool {
	return d.opts.Archive != nil && d.opts.Archive.files.Has(d.archiveName(name))
}

// forget drops a document in all its forms, the one on disk first: what revive takes from there, it
// keeps only while it is there.
func (d *Documents) forget(name string) {
	if d.opts.Archive != nil {
		d.opts.Archive.drop(d.archiveName(name))
	}
	d.opts.Memory.store.Delete(d.key(name))
}

// errUnopened says that a kept document cannot be opened. If it is there at all, it may be used
// later.
var errUnopened = errors.New("it cannot be opened")

func (d *Documents) load(name string) (*Document, error) {
	file, size, err := d.opts.Archive.files.Open(d.archiveName(name))
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
	if head.Format != archiveFormat || head.Ecosystem != d.opts.Protocol.Name || head.Name != name {
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
	e, err := d.scan(name, src)
	if err != nil {
		return nil, err
	}
	e.etag, e.fetched, e.checked, e.earlier = head.ETag, head.Fetched, info.ModTime(), true
	if now := time.Now(); e.checked.After(now) { // a clock was set back
		e.checked, e.fetched = time.Time{}, time.Time{}
	}
	e.elsewhere = d.unreachable(name, e.Document)
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
