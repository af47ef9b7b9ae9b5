// Package npmserving is npm as an ecosystem that can be served: what its clients ask for, its
// documents, its mirrors, its lock files and its tool.
package npmserving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/npm/mirrortarget"
	"github.com/ecluse-gate/ecluse/internal/npm/packument"
	"github.com/ecluse-gate/ecluse/internal/npm/publication"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Ecosystem is npm.
func Ecosystem() serving.Ecosystem {
	return serving.Ecosystem{
		Ecosystem: npm.Definition(),
		Protocol:  protocol(),
		ParseName: npm.ParseName,
		Read:      read,
		// npm shows its user the whole field, and nothing of the body, unless a word of the field
		// is Basic or Bearer: then it speaks of a wrong password, and of one for npm's own
		// registry.
		Refusal:       serving.Refusal{Scheme: "basic", ContentType: "application/json", Body: npm.ErrorBody},
		PublishHeader: []string{"Npm-Command", "Npm-Scope"}, PublisherHeader: []string{"Npm-Otp", "Npm-Auth-Type"},
		Mirror:    target,
		LockFiles: lockFiles(),
		Words:     serving.Words{Upstream: "npm registry", Served: "npm registry", Entry: "/", Token: "npm: _authToken"},
		Upstream:  ask,
	}
}

// protocol lends the npm protocol to the gate.
func protocol() gate.Ecosystem {
	return gate.Ecosystem{
		Name:          npm.Ecosystem,
		ListingAccept: "application/json",
		ListingPath:   npm.ListingPath,
		ArtifactPath:  npm.ArtifactPath,
		KeyOfFile:     npm.VersionOfFile,
		Scan: func(p registry.Package, src registry.Source) (registry.Document, error) {
			return packument.Scan(p, src.Body)
		},
		Render:        packument.Render,
		RenderVersion: renderVersion,
	}
}

func renderVersion(v registry.View, selector string) (registry.Rendering, bool, error) {
	if v.Form == npm.FormTags {
		body, err := packument.RenderTags(v)
		return registry.Rendering{Body: body, ContentType: "application/json", Versions: 1}, true, err
	}
	part, i, ok := packument.ResolveTag(v, selector)
	for p := 0; !ok && p < len(v.Parts); p++ {
		// the version belongs to the first part that holds it
		if i = v.Parts[p].Document.Lookup(selector); i >= 0 {
			part, ok = p, true
		}
	}
	if !ok || !v.Parts[part].Keep[i] {
		return registry.Rendering{}, false, nil
	}
	body, err := packument.RenderVersion(v.Parts[part].Document, i, v.Base)
	return registry.Rendering{Body: body, ContentType: "application/json", Versions: 1}, true, err
}

// read says what a request asks for. It looks at the escaped path, so that a scoped name's encoded
// slash stays what it is (C26).
func read(r *http.Request, path string) serving.Ask {
	route, err := npm.ParsePath(path)
	switch read := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case err != nil && read:
		return refuse(http.StatusNotFound, err.Error())
	case route.Kind == npm.RouteUnknown && read:
		return refuse(http.StatusNotFound, "not a path of the npm registry protocol")
	}
	name, form := route.Package.Name, serving.Form{Name: npm.Negotiate(strings.Join(r.Header.Values("Accept"), ","))}
	switch route.Kind {
	case npm.RouteListing:
		if r.Method == http.MethodPut {
			return serving.Ask{Route: "npm_publish", Want: publish(name)}
		}
		return serving.Ask{Route: "npm_listing", Want: serving.Listing{Name: name, Form: form}}
	case npm.RouteVersion:
		return serving.Ask{Route: "npm_version", Want: serving.Version{Name: name, Selector: route.Version, Form: form}}
	case npm.RouteArtifact:
		return serving.Ask{Route: "npm_artifact", Want: serving.File{Name: name, File: route.File}}
	case npm.RouteTags:
		return serving.Ask{Route: "npm_tags", Want: serving.Version{Name: name, Form: serving.Form{Name: npm.FormTags}}}
	case npm.RouteChange:
		return serving.Ask{Route: "npm_change", Want: change(r, name, route.Rest)}
	default:
		return service(r, route)
	}
}

// service answers what is about no package's listing or file.
func service(r *http.Request, route npm.Route) serving.Ask {
	switch route.Kind {
	case npm.RoutePing:
		return serving.Ask{Want: serving.Reply{ContentType: "application/json", Body: []byte("{}")}}
	case npm.RouteWhoami:
		return serving.Ask{Route: "npm_whoami", Want: serving.Caller{Render: whoami, Path: "/-/whoami"}}
	case npm.RouteSearch:
		return serving.Ask{Route: "npm_search", Want: search(r.URL.Query())}
	case npm.RouteAdvisories:
		return serving.Ask{Route: "npm_audit", Want: audit(bulk)}
	case npm.RouteAudit:
		return serving.Ask{Route: "npm_audit", Want: audit(tree)}
	case npm.RouteKeys:
		return serving.Ask{Route: "npm_keys", Want: serving.Service{What: "the keys of signatures", Path: "/-/npm/v1/keys"}}
	case npm.RouteAttestations:
		name, version := route.Package.Name, route.Version
		return serving.Ask{Route: "npm_attestations", Want: serving.Service{
			What: "what is attested of " + name + "@" + version, Name: name, Path: npm.AttestationsPath(name, version),
		}}
	default:
		return unsupported(r)
	}
}

// change asks the publication target about a package. What it takes back or changes is not to be
// taken for done where nobody did it.
func change(r *http.Request, name, path string) serving.Change {
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	var check func(io.Reader) error
	if r.Method == http.MethodPut && strings.HasPrefix(path, npm.ListingPath(name)+"/-rev/") {
		check = func(body io.Reader) error { return checked(publication.CheckChange(body, name)) }
	}
	return serving.Change{Check: check, Name: name, Path: path, Message: r.Method + " is not allowed here, and nothing of " + name + " was changed"}
}

// unsupported refuses what concerns accounts, teams, tokens and the like.
func unsupported(r *http.Request) serving.Ask {
	return serving.Ask{Route: "npm_change", Want: serving.Change{
		Message: r.Method + " is not supported here, and nothing was changed; use the registry itself (--registry) for accounts, tokens and hooks",
	}}
}

func whoami(name string) []byte {
	body, _ := json.Marshal(map[string]string{"username": name}) // strings cannot fail
	return body
}

func refuse(status int, message string) serving.Ask {
	return serving.Ask{Want: serving.Refuse{Status: status, Message: message}}
}

// publish brings a package by the npm protocol: PUT /name.
func publish(name string) serving.Publish {
	return serving.Publish{
		Method: http.MethodPut, Allow: "GET, HEAD", Name: name, Path: npm.ListingPath(name),
		Check: func(body io.Reader) (string, error) {
			return name, checked(publication.Check(body, name))
		},
	}
}

// checked is what a check says, as the publisher's fault where it is that.
func checked(err error) error {
	if errors.Is(err, publication.ErrDocument) {
		return &serving.BadPackage{Err: err}
	}
	return err
}

func target(r serving.Registry) (mirror.Target, error) {
	t, err := r.Open(r.URL)
	if err != nil {
		return nil, err
	}
	return &mirrortarget.Target{Target: t, Authorization: r.Authorization}, nil
}

// ask asks npm on this machine for its registry.
func ask(ctx context.Context, environ []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "config", "get", "registry")
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("npm is not installed")
	case ctx.Err() != nil:
		return "", fmt.Errorf("npm config get registry: %v", context.Cause(ctx))
	case err != nil:
		return "", fmt.Errorf("npm config get registry: %v", err)
	}
	return strings.TrimSpace(string(out)), nil
}
