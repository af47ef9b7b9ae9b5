package documents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cache"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
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
		Format: archiveFormat, Upstream: d.opts.Public.Base(), Ecosystem: d.opts.Protocol.Name, Name: e.name, ETag: e.etag, ContentType: src.ContentType, Fetched: e.fetched,
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
	e, err := d.restores.Do(ctx, name, func(ctx context.Context) (*Document, error) { return d.revive(ctx, name) })
	if e != nil {
		quota.Keep(ctx, e.share)
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, errOlder) || errors.Is(err, errUnopened):
		// the archive has said what there is to say
	case errors.Is(err, errDamaged):
		d.opts.Archive.report.Damaged(d.opts.Protocol.Name+":"+name, err)
	default:
		d.opts.Logger.Warn("discarding an unusable cached document", obs.Ecosystem(d.opts.Protocol.Name), obs.Package(name), obs.Err(err))
	}
	return e // nil with an error
}

// revive makes a kept document ready for use. It takes the place of its other form only: what came
// or went meanwhile is newer.
func (d *Documents) revive(ctx context.Context, name string) (*Document, error) {
	name = strings.Clone(name) // as in fetch
	key := d.key(name)
	kept, packed := d.opts.Memory.store.Get(key)
	if packed && kept.Document != nil {
		return kept, nil
	}
	var e *Document
	var err error
	if packed {
		e, err = d.unpack(ctx, kept)
	} else {
		e, err = d.load(ctx, name)
	}
	if err != nil {
		if !errors.Is(err, errUnopened) {
			d.forget(name)
		}
		return nil, err
	}
	defer e.share.Release()
	quota.Keep(ctx, e.share)
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

// errUnopened says that a kept document cannot be opened or read now. If it is there at all, it may
// be used later.
var errUnopened = errors.New("it cannot be opened")

// unpack is Memory.unpack as there is room for it.
func (d *Documents) unpack(ctx context.Context, kept *Document) (e *Document, err error) {
	share, err := d.revival(ctx, int64(kept.size))
	if err != nil {
		return nil, err
	}
	defer func() {
		if e == nil {
			share.Release()
		}
	}()
	if e, err = d.opts.Memory.unpack(kept); err != nil {
		return nil, err
	}
	e.share = share
	return e, nil
}

func (d *Documents) load(ctx context.Context, name string) (e *Document, err error) {
	file, size, err := d.opts.Archive.files.Open(d.archiveName(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, err)
	}
	defer file.Close()
	if size > d.opts.MaxDocument+maxHeadLine+sumLine {
		return nil, fmt.Errorf("%w: %d bytes", registry.ErrTooLarge, size)
	}
	share, err := d.revival(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e == nil {
			share.Release()
		}
	}()
	if e, err = d.loadFrom(file, size, name); err != nil {
		return nil, err
	}
	e.share = share
	return e, nil
}

func (d *Documents) loadFrom(file *os.File, size int64, name string) (*Document, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	head, body, err := readArchived(d.opts.Archive.files.Reader(file, d.archiveName(name)), size)
	if err != nil {
		return nil, err
	}
	if head.Upstream != d.opts.Public.Base() || head.Ecosystem != d.opts.Protocol.Name || head.Name != name {
		return nil, fmt.Errorf("%w: it is %s:%s of %s", errDamaged, head.Ecosystem, head.Name, head.Upstream)
	}
	src := registry.Source{Body: body, ContentType: head.ContentType}
	if src.URL, err = url.Parse(head.URL); err != nil {
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

// errDamaged says that a kept document is not what was written.
var errDamaged = errors.New("it is damaged")

// errOlder says that a document was kept by an earlier version, without a checksum.
var errOlder = errors.New("it is in an older format")

// readArchived reads a kept document whole, and proves it before any of it is used.
func readArchived(r io.Reader, size int64) (head archived, body []byte, err error) {
	text := make([]byte, max(size, 0))
	if _, err = io.ReadFull(r, text); errors.Is(err, cache.ErrSlow) {
		return archived{}, nil, fmt.Errorf("%w: %w", errUnopened, err)
	} else if err != nil {
		return archived{}, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if bytes.HasPrefix(text, []byte("{")) {
		return archived{}, nil, errOlder
	}
	if len(text) < sumLine {
		return archived{}, nil, errDamaged
	}
	sum, rest := text[:sumLine], text[sumLine:]
	line, body, found := bytes.Cut(rest, []byte("\n"))
	if !found || len(line) > maxHeadLine || !bytes.Equal(sum, sumOf(rest[:len(line)+1], body)) {
		return archived{}, nil, errDamaged
	}
	if err = json.Unmarshal(line, &head); err == nil && head.Format != archiveFormat {
		err = fmt.Errorf("it is in format %d", head.Format)
	}
	return head, body, err
}
