package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// stencil stands for the name of a project in the pages of a benchmark. Names of the same length
// replace it, so that any number of projects have pages of their own.
const stencil = "p00000"

// pages is an index that speaks one form and has a project of 2,000 files under every name of the
// stencil's length.
func pages(page []byte, contentType string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")
		w.Header().Set("Content-Type", contentType)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(bytes.ReplaceAll(page, []byte(stencil), []byte(name))))
	})
}

// BenchmarkPyPIListing is a project of 2,000 files: warm, as whole requests over loopback beside a
// plain file server for the same bytes in the same run; and cold, where each request is for another
// project, beside the upstream asked without the gate.
func BenchmarkPyPIListing(b *testing.B) {
	const filesURL = "http://127.0.0.1:9"
	asJSON, asHTML := fakepypi.Generate(stencil, 2000, 1, filesURL)
	upstreams := []struct {
		form, contentType string
		page              []byte
	}{{"json", pypiJSON, asJSON}, {"html", "text/html", asHTML}}
	views := []struct{ name, header string }{
		{"json", "Accept: " + pypiJSON + "\r\n"}, {"html", "Accept: text/html\r\n"},
	}
	for _, up := range upstreams {
		index := httptest.NewServer(pages(up.page, up.contentType))
		b.Cleanup(index.Close)
		settings := []string{"mounts.pypi.public", index.URL + "/simple/", "mounts.pypi.files", filesURL}
		if up.form == "html" { // it tells no times, so a rule must name what is admitted
			settings = append(settings, "rules.named.type", "AllowByIdentity", "rules.named.packages", strings.Join(names(), ","))
		}
		gate := benchGate(b, http.NotFoundHandler(), settings...)
		plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "page", time.Time{}, bytes.NewReader(up.page))
		}))
		b.Cleanup(plain.Close)
		b.Run("from-"+up.form+"/warm/plain", func(b *testing.B) { hammer(b, host(plain.URL), "/", "", 200) })
		for _, view := range views {
			path := "/pypi/simple/" + stencil + "/"
			b.Run("from-"+up.form+"/warm/"+view.name, func(b *testing.B) { hammer(b, host(gate.URL), path, view.header, 200) })
			b.Run("from-"+up.form+"/warm/"+view.name+"-gzip", func(b *testing.B) {
				hammer(b, host(gate.URL), path, view.header+"Accept-Encoding: gzip\r\n", 200)
			})
		}
		next := 0
		b.Run("from-"+up.form+"/cold/plain", func(b *testing.B) { cold(b, index.URL+"/simple/", "", &next) })
		for _, view := range views {
			b.Run("from-"+up.form+"/cold/"+view.name, func(b *testing.B) {
				cold(b, gate.URL+"/pypi/simple/", strings.TrimSpace(strings.TrimPrefix(view.header, "Accept: ")), &next)
			})
		}
	}
}

// names are the projects of a benchmark, as many as one may ask for.
func names() []string {
	all := make([]string, coldProjects)
	for i := range all {
		all[i] = fmt.Sprintf("p%05d", i)
	}
	return all
}

// coldProjects is how many projects there are: more than the gate keeps in memory.
const coldProjects = 2000

// cold asks one after the other for projects that nobody asked for before, or so long ago that
// their pages are no longer kept.
func cold(b *testing.B, root, accept string, next *int) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	var size int64
	for b.Loop() {
		*next++
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, fmt.Sprintf("%sp%05d/", root, *next%coldProjects), nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		size, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%s %v", resp.Status, err)
		}
	}
	b.SetBytes(size)
}
