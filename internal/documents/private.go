package documents

import (
	"context"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Private reads a listing from the private upstream with the caller's credential. It is never kept
// nor shared. A nil document without an error is an absence, as it is where there is no private
// upstream.
func (d *Documents) Private(ctx context.Context, name, authorization string) (registry.Document, error) {
	src, ok, err := d.askPrivate(ctx, d.opts.Protocol.Path(name), authorization)
	if !ok || err != nil {
		return nil, err
	}
	doc, err := d.opts.Protocol.Scan(d.pkg(name), src)
	if err != nil {
		return nil, refusal.FromPrivate(err)
	}
	return doc, nil
}

// PrivateList reads the list of all packages of the private upstream, as Private does a listing.
func (d *Documents) PrivateList(ctx context.Context, authorization string) ([]string, error) {
	src, ok, err := d.askPrivate(ctx, listPath, authorization)
	if !ok || err != nil {
		return nil, err
	}
	names, err := d.opts.Protocol.ScanIndex(src)
	if err != nil {
		return nil, refusal.FromPrivate(err)
	}
	return names, nil
}

// askPrivate sends one metadata read to the private upstream; false is an absence.
func (d *Documents) askPrivate(ctx context.Context, path, authorization string) (registry.Source, bool, error) {
	if d.opts.Private == nil {
		return registry.Source{}, false, nil
	}
	u, err := d.opts.Private.Under(path)
	if err != nil {
		return registry.Source{}, false, err
	}
	resp, err := d.opts.Private.Do(ctx, upstream.Request{
		Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: d.opts.Protocol.Accept,
	}, authorization)
	if err != nil {
		return registry.Source{}, false, refusal.FromPrivate(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return registry.Source{}, false, refusal.PrivateStatus(resp)
	}
	src, share, err := d.source(ctx, resp)
	if err != nil {
		return registry.Source{}, false, refusal.FromPrivate(err)
	}
	defer share.Release()
	quota.Keep(ctx, share) // until the request is answered
	return src, true, nil
}
