package gate

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// entry is one public document with the validators that came with it; both change together or not
// at all (C61). It is never changed.
type entry struct {
	doc     registry.Document // nil while it is packed
	packed  []byte            // the body of the document, then; see Documents
	etag    string
	fetched time.Time // when the body was read
	checked time.Time // when an upstream last confirmed it
	// it comes from an earlier process, and no upstream has confirmed it in this one
	earlier bool

	contentType string // of the body
	url         *url.URL
	elsewhere   map[int]bool // entries whose file lies on a host that is not asked
	renderings  *renderings  // shared by entries of the same document; nil while it is packed
}

// cost is the memory that an entry takes, without its renderings.
func (e *entry) cost() int64 {
	// the entry, its key, its address and its place in the store; an element of elsewhere
	const fixed, each = 512, 32
	n := fixed + int64(len(e.etag)+len(e.contentType)+each*len(e.elsewhere)+cap(e.packed))
	if e.doc != nil {
		n += e.doc.Cost()
	}
	return n
}

// fetched is the outcome of one public listing read.
type fetched struct {
	entry *entry // nil: the upstream says that there is no such package
	fresh bool   // the upstream said so to this very request, or to one that it shared
	// stale is the cooldown that kept the document from being confirmed, when it is older than was
	// asked for (R87); else nil.
	stale *Unavailable
}

// publicDocument gives the public document of a package: kept, fetched, or, while the authority
// cools, retained. Callers of the same document share one read (R46). Its errors are those of
// Listing.
func (g *Gate) publicDocument(ctx context.Context, name string, maxAge time.Duration) (fetched, error) {
	kept := g.recall(ctx, name)
	ok := kept != nil
	if ok && time.Since(kept.checked) < maxAge {
		return fetched{entry: kept}, nil
	}
	var out fetched
	var err error
	if refusal := g.Public.Refused(time.Now()); refusal != nil {
		err = g.unsent(g.Public, refusal)
	} else {
		out, err = g.fetches.Do(ctx, name, func(ctx context.Context) (fetched, error) {
			// a read that has ended since the look above has left its answer
			now := g.recall(ctx, name)
			if now == nil {
				now = kept
			} else if time.Since(now.checked) < maxAge {
				return fetched{entry: now}, nil
			}
			return g.fetch(ctx, name, now)
		})
	}
	if err == nil {
		out.fresh = true
		return out, nil
	}
	err = taken(err)
	wait, transient := errors.AsType[*Unavailable](err)
	if ok && transient && wait.Cooldown && time.Since(kept.checked) < g.MaxStale {
		return fetched{entry: kept, stale: wait}, nil
	}
	return fetched{}, err
}

// fetch reads one listing from the public upstream and keeps it.
func (g *Gate) fetch(ctx context.Context, name string, kept *entry) (fetched, error) {
	// it is a part of a request's address, which may be long, and is kept with the document
	name = strings.Clone(name)
	u, err := g.Public.Under(g.Ecosystem.ListingPath(name))
	if err != nil {
		return fetched{}, err
	}
	req := upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: g.Ecosystem.ListingAccept}
	if kept != nil && time.Since(kept.fetched) < revalidateTTL {
		req.IfNoneMatch = kept.etag
	}
	resp, err := g.Public.Do(ctx, req)
	if err != nil {
		return fetched{}, g.unsent(g.Public, err)
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusOK:
		return g.read(resp, name, kept)
	case s == http.StatusNotModified && req.IfNoneMatch != "":
		return g.confirm(name, kept), nil
	}
	err = g.publicStatus(resp, name)
	if is[*NotFound](err) {
		g.forget(name)
		return fetched{}, nil
	}
	return fetched{}, err
}

// confirm keeps a document as current, with the validators that came with it.
func (g *Gate) confirm(name string, kept *entry) fetched {
	fresh := *kept
	fresh.checked, fresh.earlier = time.Now(), false
	g.keep(name, &fresh)
	g.touch(name, fresh.checked)
	return fetched{entry: &fresh}
}

func (g *Gate) read(resp *upstream.Response, name string, kept *entry) (fetched, error) {
	body, err := upstream.ReadBody(resp.Response, maxDocument)
	if err != nil {
		return fetched{}, fromPublic(err)
	}
	now := time.Now()
	src := source(resp.Response, body)
	doc, err := g.Ecosystem.Scan(g.pkg(name), src)
	if err != nil {
		return fetched{}, fromPublic(err)
	}
	if g.older(doc, kept) {
		g.Metrics.StaleUpstream(g.Ecosystem.Name)
		return g.confirm(name, kept), nil
	}
	e := &entry{
		doc: doc, etag: resp.Header.Get("ETag"), fetched: now, checked: now, contentType: src.ContentType, url: src.URL, renderings: &renderings{},
	}
	if kept != nil {
		e.renderings = kept.renderings.successor()
	}
	e.elsewhere = g.unreachable(name, doc)
	if n := doc.Dropped() + len(e.elsewhere); n > 0 {
		g.Metrics.Dropped(g.Ecosystem.Name, n)
	}
	g.keep(name, e)
	g.save(name, src, e)
	return fetched{entry: e}, nil
}

// keep keeps an entry unless there is a newer one: the answer to a later question, which was read
// in less time.
func (g *Gate) keep(name string, e *entry) {
	g.documents.Swap(g.docKey(name), e, e.cost()+e.renderings.cost(), func(old *entry, ok bool) bool {
		return !ok || !old.checked.After(e.checked)
	})
}

// source is an answer as an ecosystem reads it.
func source(resp *http.Response, body []byte) registry.Source {
	src := registry.Source{Body: body, ContentType: resp.Header.Get("Content-Type")}
	if resp.Request != nil {
		src.URL = resp.Request.URL
	}
	return src
}

// unreachable finds the entries whose files lie on hosts that are not configured, where only links
// count, and says so once for the document.
func (g *Gate) unreachable(name string, doc registry.Document) map[int]bool {
	if g.Ecosystem.ArtifactPath != nil {
		return nil
	}
	var out map[int]bool
	example := ""
	for i, v := range doc.Versions() {
		if len(v.Artifacts) > 0 {
			if g.owns(v.Artifacts[0].URL) {
				continue
			}
			example = v.Artifacts[0].File
		}
		if out == nil {
			out = map[int]bool{}
		}
		out[i] = true
	}
	if len(out) > 0 {
		g.Logger.Warn("files on hosts that are not configured are not served", obs.Ecosystem(g.Ecosystem.Name), obs.Package(name),
			slog.Int("count", len(out)), slog.String("example", example))
	}
	return out
}

// owns reports whether owner would find an upstream.
func (g *Gate) owns(address string) bool {
	return slices.ContainsFunc(g.Files, func(f *upstream.Public) bool { return f.Owns(address) })
}

// owner finds the upstream that may be asked for an address.
func (g *Gate) owner(address string) (*upstream.Public, *url.URL, bool) {
	for _, f := range g.Files {
		if u, ok := f.Owned(address); ok {
			return f, u, true
		}
	}
	return nil, nil, false
}
