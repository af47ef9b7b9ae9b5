// Package mirrortarget is an npm registry that approved packages are copied to.
package mirrortarget

import (
	"context"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/npm/packument"
	"github.com/ecluse-gate/ecluse/internal/npm/publication"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// Tag is the dist-tag under which versions are published to an npm mirror. Registries want a tag
// with each version; this one is nobody's choice, so that "latest" and all others stay what they
// are.
const Tag = packument.MirrorTag

// Target is an npm registry as a mirror.
type Target struct {
	Target *upstream.Target
	// Authorization is the value of the field of this name, empty for none; it may change.
	Authorization func() string
}

// Base implements mirror.Target.
func (t *Target) Base() string { return strings.TrimSuffix(t.Target.URL().String(), "/") }

// Holds implements mirror.Target: whether the package's document has the version.
func (t *Target) Holds(ctx context.Context, j mirror.Job) (bool, error) {
	u, err := t.Target.Under(npm.ListingPath(j.Package))
	if err != nil {
		return false, err
	}
	resp, err := t.Target.Read(ctx, upstream.Request{
		Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: "application/vnd.npm.install-v1+json, application/json;q=0.9",
	}, t.Authorization())
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	body, err := mirror.ReadListing(resp)
	if body == nil || err != nil {
		return false, err
	}
	doc, err := packument.Scan(registry.Package{Ecosystem: npm.Ecosystem, Name: j.Package}, body)
	if err != nil {
		return false, err
	}
	return doc.Lookup(j.Version) >= 0, nil
}

// Put implements mirror.Target. A conflict may mean that the version is there, or that another
// writer was faster with another one; only the target knows, so it is asked.
func (t *Target) Put(ctx context.Context, j mirror.Job, c *gate.Copy, f *mirror.Spooled) error {
	u, err := t.Target.Under(npm.ListingPath(j.Package))
	if err != nil {
		return err
	}
	body, length, err := publication.Version{Name: j.Package, Number: j.Version, Manifest: c.Manifest, Tag: Tag, Size: f.Size}.Document(f.Reader())
	if err != nil {
		return &mirror.Unfit{Reason: err.Error()}
	}
	resp, err := t.Target.Write(ctx, upstream.Write{
		Method: http.MethodPut, URL: u, Body: body, Length: length, Authorization: t.Authorization(),
		Header: http.Header{"Content-Type": {"application/json"}, "Npm-Command": {"publish"}},
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return mirror.Settle(ctx, t, j, resp)
}
