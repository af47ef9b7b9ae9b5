// Package pypiserving is the Python index as an ecosystem that can be served: what its clients ask
// for, its pages, its mirrors and its lock files.
package pypiserving

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/pypi/mirrortarget"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/pypi/page"
	"github.com/ecluse-gate/ecluse/internal/pypi/upload"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Ecosystem is the Python index.
func Ecosystem() serving.Ecosystem {
	return serving.Ecosystem{
		Ecosystem:  pypi.Definition(),
		Protocol:   protocol(),
		ParseName:  naming.ParseName,
		VersionKey: naming.EqualKey,
		Read:       read,
		Refusal:    serving.Refusal{ContentType: "text/plain; charset=utf-8", Body: pypi.ErrorBody},
		Mirror:     target,
		LockFiles:  lockFiles(),
		Words:      serving.Words{Upstream: "PyPI index", Served: "Python index", Entry: "/simple/", Token: "pip: the password"},
	}
}

// protocol lends the Python index protocol to the gate.
func protocol() gate.Ecosystem {
	return gate.Ecosystem{
		Name:          pypi.Ecosystem,
		ListingAccept: pypi.IndexAccept,
		ListingPath:   pypi.ListingPath,
		KeyOfFile:     pypi.KeyOfFile,
		Scan:          page.Scan,
		Render:        page.Render,
		Serial:        page.Serial,
		Proof:         page.Proof,
		ScanIndex:     pypi.ScanIndex,
	}
}

// read says what a request asks for.
func read(r *http.Request, path string) serving.Ask {
	route, err := pypi.ParsePath(path)
	if err != nil {
		return serving.Ask{Want: serving.Refuse{Status: http.StatusNotFound, Message: err.Error()}}
	}
	name := route.Package.Name
	switch {
	case route.Kind == pypi.RouteUpload:
		return serving.Ask{Route: "pypi_upload", Want: publish(r.Header.Get("Content-Type"))}
	case route.Redirect != "":
		return serving.Ask{Route: "pypi_redirect", Want: serving.Redirect{Path: route.Redirect}}
	case route.Kind == pypi.RouteFile:
		return serving.Ask{Route: "pypi_file", Want: serving.File{Name: name, File: route.File}}
	case route.Kind == pypi.RouteCompanion:
		return serving.Ask{Route: "pypi_companion", Want: serving.File{Name: name, File: route.File, Companion: true}}
	case route.Kind == pypi.RouteProof:
		return serving.Ask{Route: "pypi_provenance", Want: serving.Proof{Name: name, File: route.File}}
	case route.Kind == pypi.RouteIndex:
		return serving.Ask{Route: "pypi_index", Want: serving.Index{Form: form(r), Render: pypi.RenderIndex}}
	case route.Kind == pypi.RouteListing:
		return serving.Ask{Route: "pypi_listing", Want: serving.Listing{Name: name, Form: form(r)}}
	default:
		return serving.Ask{Want: serving.Refuse{Status: http.StatusNotFound, Message: "not a path of the Python index protocol"}}
	}
}

// form is the form of a page that a client gets.
func form(r *http.Request) serving.Form {
	name, contentType, ok := pypi.Negotiate(strings.Join(r.Header.Values("Accept"), ","), r.URL.Query().Get("format"))
	if !ok {
		return serving.Form{
			Unacceptable: "this index offers application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html or text/html",
		}
	}
	return serving.Form{Name: name, ContentType: contentType}
}

// publish brings a file by the Python index protocol: POST /legacy/.
func publish(contentType string) serving.Publish {
	return serving.Publish{
		Method: http.MethodPost, Allow: http.MethodPost,
		// the name is mostly one of the first fields
		NameOf: func(body io.Reader) (string, bool) { return upload.NameOf(contentType, body) },
		Check: func(body io.Reader) (string, error) {
			name, err := upload.CheckForm(contentType, body)
			if errors.Is(err, upload.ErrForm) {
				err = &serving.BadPackage{Err: err}
			}
			return name, err
		},
	}
}

// target needs the index as well, since an upload endpoint does not tell what it holds.
func target(r serving.Registry) (mirror.Target, error) {
	index := r.Index
	if index == nil {
		index = mirrortarget.IndexOf(r.URL)
	}
	uploads, err := r.Open(r.URL)
	if err != nil {
		return nil, err
	}
	pages, err := r.Open(index)
	if err != nil {
		return nil, err
	}
	return &mirrortarget.Target{Target: uploads, Index: pages, Authorization: r.Authorization}, nil
}
