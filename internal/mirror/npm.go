package mirror

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/npm/publication"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// NPMTag is the dist-tag under which versions are published to an npm mirror. Registries want a tag
// with each version; this one is nobody's choice, so that "latest" and all others stay what they
// are.
const NPMTag = "ecluse-mirror"

// NPMTarget is an npm registry as a mirror.
type NPMTarget struct {
	Target *upstream.Target
	Token  string // bearer; empty: none
}

// Base implements Target.
func (t *NPMTarget) Base() string { return strings.TrimSuffix(t.Target.URL().String(), "/") }

func (t *NPMTarget) authorization() string {
	if t.Token == "" {
		return ""
	}
	return "Bearer " + t.Token
}

// Holds implements Target: whether the package's document has the version.
func (t *NPMTarget) Holds(ctx context.Context, j Job) (bool, error) {
	u, err := t.Target.Under(npm.ListingPath(j.Package))
	if err != nil {
		return false, err
	}
	resp, err := t.Target.Read(ctx, upstream.Request{
		Method: http.MethodGet, URL: u, Kind: upstream.Metadata, Accept: "application/vnd.npm.install-v1+json, application/json;q=0.9",
	}, t.authorization())
	if err != nil {
		return false, err
	}
	body, err := readListing(resp)
	if body == nil || err != nil {
		return false, err
	}
	doc, err := npm.Scan(registry.Package{Ecosystem: npm.Ecosystem, Name: j.Package}, body)
	if err != nil {
		return false, err
	}
	return doc.Lookup(j.Version) >= 0, nil
}

// Put implements Target. A conflict may mean that the version is there, or that another writer was
// faster with another one; only the target knows, so it is asked.
func (t *NPMTarget) Put(ctx context.Context, j Job, c *gate.Copy, f *Spooled) error {
	u, err := t.Target.Under(npm.ListingPath(j.Package))
	if err != nil {
		return err
	}
	body, length, err := publication.Version{Name: j.Package, Number: j.Version, Manifest: c.Manifest, Tag: NPMTag, Size: f.Size}.Document(f.Reader())
	if err != nil {
		return unfit("%v", err)
	}
	resp, err := t.Target.Write(ctx, upstream.Write{
		Method: http.MethodPut, URL: u, Body: body, Length: length, Authorization: t.authorization(),
		Header: http.Header{"Content-Type": {"application/json"}, "Npm-Command": {"publish"}},
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return settle(ctx, t, j, resp)
}

// settle reads the answer to a write. A refusal that registries also give for what they hold
// already is checked by looking.
func settle(ctx context.Context, t Target, j Job, resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	refused := answerError(resp)
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict:
		if held, err := t.Holds(ctx, j); err != nil {
			return errors.Join(refused, err)
		} else if held {
			return ErrPresent
		}
	}
	return refused
}
