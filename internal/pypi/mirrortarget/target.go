// Package mirrortarget is a Python index that approved files are copied to.
package mirrortarget

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/page"
	"github.com/ecluse-gate/ecluse/internal/pypi/upload"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Target is a Python index that takes uploads as a mirror.
type Target struct {
	Target *upstream.Target // the upload endpoint
	Index  *upstream.Target // the index whose pages tell what the target holds
	// Authorization is the value of the field of this name for both, empty for none; it may change.
	Authorization func() string
}

// IndexOf is where an upload endpoint's index lies by custom: "…/legacy/" has its pages at
// "…/simple/", and any other address below itself.
func IndexOf(upload *url.URL) *url.URL {
	u := *upload
	base := strings.TrimSuffix(u.Path, "/")
	u.Path, u.RawPath = strings.TrimSuffix(base, "/legacy")+"/simple/", ""
	return &u
}

// Base implements mirror.Target.
func (t *Target) Base() string { return strings.TrimSuffix(t.Target.URL().String(), "/") }

// Holds implements mirror.Target: whether the project's page lists the file.
func (t *Target) Holds(ctx context.Context, j mirror.Job) (bool, error) {
	u, err := t.Index.Under(pypi.ListingPath(j.Package))
	if err != nil {
		return false, err
	}
	resp, err := t.Index.Read(ctx, upstream.Request{Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: pypi.IndexAccept}, t.Authorization())
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body, err := mirror.ReadListing(resp)
	if body == nil || err != nil {
		return false, err
	}
	doc, err := page.Scan(registry.Package{Ecosystem: pypi.Ecosystem, Name: j.Package}, registry.Source{
		Body: body, ContentType: resp.Header.Get("Content-Type"), URL: u,
	})
	if err != nil {
		return false, err
	}
	return doc.Lookup(j.File) >= 0, nil
}

// Put implements mirror.Target with the form that twine sends.
func (t *Target) Put(ctx context.Context, j mirror.Job, _ *gate.Copy, f *mirror.Spooled) error {
	meta, err := upload.ReadMetadata(j.File, f.File, f.Size)
	if err != nil {
		return &mirror.Unfit{Reason: err.Error()}
	}
	if err := meta.Check(j.Package, j.Version); err != nil {
		return &mirror.Unfit{Reason: err.Error()}
	}
	form, err := upload.NewForm(j.File, meta, upload.Sums{SHA256: f.SHA256[:], MD5: f.MD5[:]}, f.Reader(), f.Size)
	if err != nil {
		return &mirror.Unfit{Reason: err.Error()}
	}
	resp, err := t.Target.Write(ctx, upstream.Write{
		Method: http.MethodPost, URL: t.Target.URL(), Body: form.Body, Length: form.Length, Authorization: t.Authorization(),
		Header: http.Header{"Content-Type": {form.ContentType}},
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return mirror.Settle(ctx, t, j, resp)
}
