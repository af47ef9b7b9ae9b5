package server

import (
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/page"
)

// PyPIEcosystem lends the Python index protocol to the gate.
func PyPIEcosystem() gate.Ecosystem {
	return gate.Ecosystem{
		Name:          pypi.Ecosystem,
		ListingAccept: pypi.IndexAccept,
		ListingPath:   pypi.ListingPath,
		KeyOfFile:     pypi.KeyOfFile,
		Scan:          page.Scan,
		Render:        page.Render,
		Serial:        page.Serial,
		ScanIndex:     pypi.ScanIndex,
	}
}

// pypiMount speaks the Python index protocol to clients and asks the gate.
type pypiMount struct{ mount }

func newPyPIMount(s *Server) *pypiMount {
	return &pypiMount{mount{
		prefix: "/pypi", ecosystem: pypi.Ecosystem, gate: s.opts.PyPI, server: s,
		refusalType: "text/plain; charset=utf-8", refusalBody: pypi.ErrorBody,
	}}
}

// ServeHTTP answers one request below the mount.
func (m *pypiMount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, err := pypi.ParsePath(strings.TrimPrefix(r.URL.EscapedPath(), m.prefix))
	if err != nil {
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: err.Error()})
		return
	}
	switch {
	case route.Kind == pypi.RouteUnknown:
		m.refuse(w, r, "other", refusal{status: http.StatusNotFound, message: "not a path of the Python index protocol"})
	case route.Kind == pypi.RouteUpload:
		m.upload(w, r)
	case !m.readOnly(w, r):
	case route.Redirect != "":
		setRoute(w, "pypi_redirect")
		target := m.prefix + route.Redirect
		if r.URL.RawQuery != "" {
			target += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", target)
		m.write(w, r, http.StatusMovedPermanently, m.refusalType, []byte("moved to "+target+"\n"))
	default:
		m.admit(w, r, func() { m.read(w, r, route) })
	}
}

func (m *pypiMount) read(w http.ResponseWriter, r *http.Request, route pypi.Route) {
	if route.Kind == pypi.RouteFile || route.Kind == pypi.RouteCompanion {
		name := map[pypi.RouteKind]string{pypi.RouteFile: "pypi_file", pypi.RouteCompanion: "pypi_companion"}[route.Kind]
		m.artifact(w, r, name, gate.ArtifactRequest{
			Method: r.Method, Name: route.Package.Name, File: route.File, Companion: route.Kind == pypi.RouteCompanion,
			Authorization: r.Header.Get("Authorization"),
		})
		return
	}
	form, contentType, ok := pypi.Negotiate(strings.Join(r.Header.Values("Accept"), ","), r.URL.Query().Get("format"))
	if !ok {
		w.Header().Set("Vary", "Accept, Accept-Encoding")
		m.refuse(w, r, "pypi_listing", refusal{
			status: http.StatusNotAcceptable, message: "this index offers application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html or text/html",
		})
		return
	}
	if route.Kind == pypi.RouteIndex {
		m.index(w, r, form, contentType)
		return
	}
	listing, err := m.gate.Listing(r.Context(), gate.ListingRequest{
		Name: route.Package.Name, Form: form, Base: m.server.base(r) + m.prefix, Authorization: r.Header.Get("Authorization"),
	})
	if err != nil {
		m.fail(w, r, "pypi_listing", err)
		return
	}
	setRoute(w, "pypi_listing")
	writeListing(w, r, listing.As(contentType))
}

// index lists all projects. No rule looks at it: what a rule withholds is withheld on the project's
// own page.
func (m *pypiMount) index(w http.ResponseWriter, r *http.Request, form, contentType string) {
	projects, err := m.gate.Index(r.Context(), r.Header.Get("Authorization"))
	if err != nil {
		m.fail(w, r, "pypi_index", err)
		return
	}
	setRoute(w, "pypi_index")
	listingHeader(w.Header(), projects.Degraded, projects.Cooldown)
	m.write(w, r, http.StatusOK, contentType, pypi.RenderIndex(projects.Names, form))
}
