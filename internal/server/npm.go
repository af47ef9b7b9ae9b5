package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// npmEcosystem lends the npm protocol to the gate.
func npmEcosystem() gate.Ecosystem {
	return gate.Ecosystem{
		Name:          npm.Ecosystem,
		ListingAccept: "application/json",
		ListingPath:   npm.ListingPath,
		ArtifactPath:  npm.ArtifactPath,
		VersionOfFile: npm.VersionOfFile,
		Scan:          npm.Scan,
		Render:        npm.Render,
		RenderVersion: renderNPMVersion,
	}
}

func renderNPMVersion(v registry.View, selector string) (registry.Rendering, bool, error) {
	part, i, ok := npm.ResolveTag(v, selector)
	for p := 0; !ok && p < len(v.Parts); p++ {
		if i = v.Parts[p].Document.Lookup(selector); i >= 0 { // the version belongs to the first part that holds it
			part, ok = p, true
		}
	}
	if !ok || !v.Parts[part].Keep[i] {
		return registry.Rendering{}, false, nil
	}
	body, err := npm.RenderVersion(v.Parts[part].Document, i, v.Base)
	return registry.Rendering{Body: body, ContentType: "application/json", Versions: 1}, true, err
}

// npmMount speaks npm's protocol to clients and asks the gate.
type npmMount struct {
	prefix string // "/npm"
	gate   *gate.Gate
	server *Server
}

// ServeHTTP answers one request below the mount. Routing looks at the escaped path, so that a scoped name's encoded slash stays what
// it is (C26).
func (m *npmMount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, err := npm.ParsePath(strings.TrimPrefix(r.URL.EscapedPath(), m.prefix))
	if err != nil {
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: err.Error()})
		return
	}
	switch route.Kind {
	case npm.RoutePing:
		m.json(w, r, http.StatusOK, []byte("{}"))
	case npm.RouteSearch, npm.RouteAudit, npm.RouteService:
		m.refuse(w, r, "other", refusal{status: http.StatusNotImplemented, message: notServed(route.Kind)})
	case npm.RouteListing, npm.RouteVersion, npm.RouteArtifact:
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			m.refuse(w, r, "other", refusal{
				status: http.StatusMethodNotAllowed, message: r.Method + " is not served here: this gate does not publish",
			})
			return
		}
		m.server.admit(w, r, m, func() { m.read(w, r, route) })
	default:
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: "there is nothing at this path of the npm registry protocol"})
	}
}

func notServed(k npm.RouteKind) string {
	switch k {
	case npm.RouteSearch:
		return "search is not served by this gate"
	case npm.RouteAudit:
		return "audits are not served by this gate; run npm audit against a registry that offers them"
	}
	return "this service of the npm registry is not offered by this gate"
}

func (m *npmMount) read(w http.ResponseWriter, r *http.Request, route npm.Route) {
	if route.Kind == npm.RouteArtifact {
		m.artifact(w, r, route)
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

func (m *npmMount) artifact(w http.ResponseWriter, r *http.Request, route npm.Route) {
	a, err := m.gate.Artifact(r.Context(), gate.ArtifactRequest{
		Method: r.Method, Name: route.Package.Name, File: route.File, Authorization: r.Header.Get("Authorization"),
	})
	if err != nil {
		m.fail(w, r, "npm_artifact", err)
		return
	}
	setRoute(w, "npm_artifact")
	m.server.writeArtifact(w, r, a)
}

// fail answers an error, and logs it when an operator has something to learn from it. A cooldown is told by its transitions alone.
func (m *npmMount) fail(w http.ResponseWriter, r *http.Request, route string, err error) {
	answer := refuse(err)
	level := slog.LevelDebug
	switch {
	case answer.status == http.StatusInternalServerError:
		level = slog.LevelError
	case answer.status == http.StatusBadGateway || answer.status == http.StatusServiceUnavailable && !answer.cooldown:
		level = slog.LevelWarn
	case is[*gate.Denied](err):
		level = slog.LevelInfo
	}
	m.server.opts.Logger.LogAttrs(context.WithoutCancel(r.Context()), level, "request refused", obs.Ecosystem(npm.Ecosystem),
		slog.Int("status", answer.status), slog.String("path", r.URL.EscapedPath()), obs.Err(err))
	m.refuse(w, r, route, answer)
}

// refuse writes a refusal in npm's dialect (R37).
func (m *npmMount) refuse(w http.ResponseWriter, r *http.Request, route string, answer refusal) {
	setRoute(w, route)
	traceRefusal(r.Context(), answer)
	message := answer.message
	if help := m.server.opts.HelpMessage; help != "" {
		message += ". " + help
	}
	answer.header(w.Header())
	m.json(w, r, answer.status, npm.ErrorBody(message))
}

func (m *npmMount) json(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
