package documents

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// fetch reads one listing from the public upstream and keeps it; nil is an absence.
func (d *Documents) fetch(ctx context.Context, name string, kept *Document) (*Document, error) {
	// it is a part of a request's address, which may be long, and is kept with the document
	name = strings.Clone(name)
	validator := ""
	if kept != nil && time.Since(kept.fetched) < revalidateTTL {
		validator = kept.etag
	}
	return d.fetchWith(ctx, name, kept, validator)
}

// rereadAfter is how old the body of a document must be to be read anew because a file contradicts
// it: an upstream whose file is simply wrong is not asked for its listing at each request.
const rereadAfter = time.Minute

// Reread reads the public document of a package whole, without validators, which an upstream would
// answer with the word that nothing has changed. It is for a document that a file has proved wrong.
// It reports whether there is another reading now. On a failure what is kept stays.
func (d *Documents) Reread(ctx context.Context, name string) bool {
	kept := d.recall(ctx, name)
	if kept != nil && time.Since(kept.fetched) < rereadAfter {
		return false
	}
	_, err := d.rereads.Do(ctx, name, func(ctx context.Context) (*Document, error) {
		return d.fetchWith(ctx, strings.Clone(name), kept, "")
	})
	return err == nil
}

func (d *Documents) fetchWith(ctx context.Context, name string, kept *Document, validator string) (*Document, error) {
	resp, err := d.ask(ctx, d.opts.Protocol.Path(name), validator)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusOK:
		return d.read(ctx, resp, name, kept)
	case s == http.StatusNotModified && validator != "":
		return d.confirm(kept), nil
	}
	err = d.opts.Side.Status(resp, name)
	if _, absent := errors.AsType[*refusal.NotFound](err); absent {
		d.forget(name)
		return nil, nil
	}
	return nil, err
}

// ask sends one metadata read to the public upstream.
func (d *Documents) ask(ctx context.Context, path, validator string) (*upstream.Response, error) {
	u, err := d.opts.Public.Under(path)
	if err != nil {
		return nil, err
	}
	resp, err := d.opts.Public.Do(ctx, upstream.Request{
		Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: d.opts.Protocol.Accept, IfNoneMatch: validator,
	})
	if err != nil {
		return nil, d.opts.Side.Unsent(err)
	}
	return resp, nil
}

// confirm keeps a document as current, with the validators that came with it.
func (d *Documents) confirm(kept *Document) *Document {
	fresh := *kept
	fresh.checked, fresh.earlier = time.Now(), false
	d.keep(&fresh)
	d.touch(fresh.name, fresh.checked)
	return &fresh
}

func (d *Documents) read(ctx context.Context, resp *upstream.Response, name string, kept *Document) (*Document, error) {
	src, share, err := d.source(ctx, resp.Response)
	if err != nil {
		return nil, refusal.FromPublic(err)
	}
	defer share.Release()
	quota.Keep(ctx, share)
	now := time.Now()
	e, err := d.scan(name, src)
	if err != nil {
		return nil, refusal.FromPublic(err)
	}
	if d.older(e, kept) {
		d.opts.Metrics.StaleUpstream(d.opts.Protocol.Name)
		return d.confirm(kept), nil
	}
	e.share = share
	e.etag, e.fetched, e.checked = resp.Header.Get("ETag"), now, now
	if kept != nil {
		e.renderings = kept.renderings.successor()
	}
	e.elsewhere = d.unreachable(name, e.Document)
	if n := e.Dropped() + len(e.elsewhere); n > 0 {
		d.opts.Metrics.Dropped(d.opts.Protocol.Name, n)
	}
	d.keep(e)
	d.save(src, e)
	return e, nil
}

// keep keeps a document unless there is a newer one: the answer to a later question, which was read
// in less time.
func (d *Documents) keep(e *Document) {
	d.opts.Memory.store.Swap(d.key(e.name), e, e.cost()+e.renderings.cost(), func(old *Document, ok bool) bool {
		return !ok || !old.checked.After(e.checked)
	})
}

// older reports whether a document is from before the kept one, by the upstream's own count of
// changes (C22).
func (d *Documents) older(doc, kept *Document) bool {
	serial := d.opts.Protocol.Serial
	if serial == nil || kept == nil {
		return false
	}
	now, ok1 := serial(doc.Document)
	before, ok2 := serial(kept.Document)
	return ok1 && ok2 && now < before
}
