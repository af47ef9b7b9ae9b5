package server

import (
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/npm/packument"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// NPMEcosystem lends the npm protocol to the gate.
func NPMEcosystem() gate.Ecosystem {
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
		RenderVersion: renderNPMVersion,
	}
}

func renderNPMVersion(v registry.View, selector string) (registry.Rendering, bool, error) {
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

// npmMount speaks npm's protocol to clients and asks the gate.
type npmMount struct{ mount }

func newNPMMount(s *Server) *npmMount {
	return &npmMount{mount{prefix: "/npm", ecosystem: npm.Ecosystem, gate: s.opts.NPM, server: s, refusalType: "application/json", refusalBody: npm.ErrorBody}}
}

// ServeHTTP answers one request below the mount. Routing looks at the escaped path, so that a
// scoped name's encoded slash stays what it is (C26).
func (m *npmMount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, err := npm.ParsePath(strings.TrimPrefix(r.URL.EscapedPath(), m.prefix))
	if err != nil {
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: err.Error()})
		return
	}
	switch route.Kind {
	case npm.RouteListing:
		if r.Method == http.MethodPut {
			m.publish(w, r, route)
		} else if m.readOnly(w, r) {
			m.admit(w, r, func() { m.read(w, r, route) })
		}
	case npm.RoutePing:
		m.write(w, r, http.StatusOK, "application/json", []byte("{}"))
	case npm.RouteSearch, npm.RouteAudit, npm.RouteService:
		m.refuse(w, r, "other", refusal{status: http.StatusNotImplemented, message: notServed(route.Kind)})
	case npm.RouteVersion, npm.RouteArtifact:
		if m.readOnly(w, r) {
			m.admit(w, r, func() { m.read(w, r, route) })
		}
	default:
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: "not a path of the npm registry protocol"})
	}
}

func notServed(k npm.RouteKind) string {
	switch k {
	case npm.RouteSearch:
		return "this gate does not support search"
	case npm.RouteAudit:
		return "this gate does not support audits; run npm audit against a registry that does"
	default:
		return "this gate does not support this endpoint of the npm registry"
	}
}

func (m *npmMount) read(w http.ResponseWriter, r *http.Request, route npm.Route) {
	if route.Kind == npm.RouteArtifact {
		m.artifact(w, r, "npm_artifact", gate.ArtifactRequest{
			Method: r.Method, Name: route.Package.Name, File: route.File, Authorization: r.Header.Get("Authorization"),
		})
		return
	}
	req := gate.ListingRequest{
		Name: route.Package.Name, Form: npm.Negotiate(strings.Join(r.Header.Values("Accept"), ",")),
		Base: m.server.base(r) + m.prefix, Authorization: r.Header.Get("Authorization"),
	}
	var listing *gate.Listing
	var err error
	name := "npm_listing"
	if route.Kind == npm.RouteVersion {
		name = "npm_version"
		listing, err = m.gate.Version(r.Context(), req, route.Version)
	} else {
		listing, err = m.gate.Listing(r.Context(), req)
	}
	if err != nil {
		m.fail(w, r, name, err)
		return
	}
	setRoute(w, name)
	writeListing(w, r, listing)
}
