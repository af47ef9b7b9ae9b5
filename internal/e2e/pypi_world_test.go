package e2e_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// index is a scripted Python index with its files host, each on a socket of its own.
type index struct {
	*fakepypi.Registry
	url, files string // without a trailing slash
}

func startIndex(t *testing.T) *index {
	t.Helper()
	x := &index{Registry: fakepypi.New("")}
	indexServer, filesServer := httptest.NewServer(x.Index), httptest.NewServer(x.Files)
	t.Cleanup(indexServer.Close)
	t.Cleanup(filesServer.Close)
	x.url, x.files = indexServer.URL, filesServer.URL
	x.FilesURL = x.files
	return x
}

// What the public index holds. apple needs pear; of apple 1.1 is what everybody should get, since
// 1.2 is withdrawn, 1.3 is younger than the rules allow, 1.4 exists as sources only, and 2.0 is for
// a Python to come. (A range below 1.3 leaves the sources out.)
const (
	appleGood = "1.1"
	yankText  = `broken on Tuesdays, "see" <notes>`
)

func (x *index) stock(now time.Time) {
	x.Publish("pear", fakepypi.Wheel("pear", "0.9"), fakepypi.Wheel("pear", "1.0"))
	needs := fakepypi.Requires("pear>=0.9")
	x.Publish("apple",
		fakepypi.Wheel("apple", "1.0", needs), fakepypi.Wheel("apple", appleGood, needs, fakepypi.RequiresPython(">=2.7")),
		fakepypi.Sdist("apple", appleGood, needs),
		fakepypi.Wheel("apple", "1.2", fakepypi.Yanked(yankText)),
		fakepypi.Wheel("apple", "1.3", fakepypi.UploadedAt(now)),
		fakepypi.Wheel("apple", "2.0", fakepypi.RequiresPython(">=9.1")))
	x.Publish("sources", fakepypi.Wheel("sources", "1.0"), fakepypi.Sdist("sources", "1.1"))
	x.Publish("bare", fakepypi.Wheel("bare", "1.0", fakepypi.Requires("pear"), fakepypi.WithoutCompanion(), fakepypi.Padding(64<<10)))
	x.Publish("too-young", fakepypi.Wheel("too-young", "1.0", fakepypi.UploadedAt(now)))
	x.Publish("fluffy-server", fakepypi.Wheel("fluffy-server", "1.0"))
}

// file finds a published file by its name.
func (x *index) file(t *testing.T, project, name string) (found fakepypi.File) {
	t.Helper()
	x.Change(project, func(p *fakepypi.Project) {
		if i := slices.IndexFunc(p.Files, func(f fakepypi.File) bool { return f.Name == name }); i >= 0 {
			found = p.Files[i]
		}
	})
	if found.Name == "" {
		t.Fatalf("%s has no file %s", project, name)
	}
	return found
}

// orchard is a public and a private index. The private one holds plum, which needs apple, and a
// pear of its own, which is older than the public one's and found nonetheless.
type orchard struct{ public, private *index }

func newOrchard(t *testing.T) *orchard {
	t.Helper()
	o := &orchard{startIndex(t), startIndex(t)}
	o.public.stock(time.Now())
	o.private.RelativeLinks = true // the private index holds its own files
	o.private.Publish("plum", fakepypi.Wheel("plum", "3.1", fakepypi.Requires("apple<1.3"), fakepypi.UploadedAt(time.Time{})))
	o.private.Publish("pear", fakepypi.Wheel("pear", "0.9.5", fakepypi.UploadedAt(time.Time{})))
	return o
}

// config is a gate's configuration in front of the orchard. The npm mount leads nowhere.
func (o *orchard) config(more string) string {
	return fmt.Sprintf("mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '%s/simple/', files: ['%s'], private: '%s/simple/', firstParty: [plum]}\n%s",
		o.public.url, o.public.files, o.private.url, more)
}

// pypi is the URL of a gate's Python index, with a trailing slash.
func (g *gate) pypi() string { return strings.TrimSuffix(g.npm, "npm/") + "pypi/simple/" }

// noSecrets wants no request at a public host to carry a credential or to tell of a private
// project.
func (o *orchard) noSecrets(t *testing.T) {
	t.Helper()
	for _, s := range append(o.public.Index.Seen(), o.public.Files.Seen()...) {
		if s.Header.Get("Authorization") != "" || s.Header.Get("Cookie") != "" || strings.Contains(s.Path, "plum") {
			t.Errorf("a public host was sent %s %s with %q", s.Method, s.Path, s.Header)
		}
	}
}

// counted wants the gate's own count of public requests to be what arrived at both hosts.
func (o *orchard) counted(t *testing.T, g *gate) {
	t.Helper()
	arrived := o.public.Index.Count() + o.public.Files.Count()
	if counted := g.publicRequests(t); counted != arrived {
		t.Errorf("ecluse_public_requests_total is %d, %d requests arrived", counted, arrived)
	}
}

// staticIndex writes the public index as a tree of plain files, as people make it with a script,
// and serves it with Python's own web server: one form, one host, relative links and no times.
func staticIndex(t *testing.T, x *index) (url string) {
	t.Helper()
	dir := t.TempDir()
	writePages(t, dir, x, "apple", "pear", "sources")
	address := freeAddress(t)
	host, port, _ := strings.Cut(address, ":")
	start(t, dir, environment(dir), command(t, "/usr/bin/python3"), "-m", "http.server", "--bind", host, port)
	until(t, "the static index", func() bool { return answers("http://" + address + "/simple/apple/") })
	return "http://" + address
}

// writePages writes some projects of an index as plain files.
func writePages(t *testing.T, dir string, x *index, projects ...string) {
	t.Helper()
	for _, project := range projects {
		var page strings.Builder
		page.WriteString("<html><body>\n")
		x.Change(project, func(p *fakepypi.Project) {
			for _, f := range p.Files {
				write(t, dir, "files/"+f.Name, string(f.Content))
				yanked := ""
				if f.Yanked {
					yanked = " data-yanked" // without a value, which XML does not know (C66)
				}
				python := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(f.RequiresPython)
				fmt.Fprintf(&page, "<a href=../../files/%s#sha256=%s data-requires-python=\"%s\"%s>%s</a><br>\n", f.Name, fakepypi.Sum(f.Content), python, yanked, f.Name)
			}
		})
		write(t, dir, "simple/"+project+"/index.html", page.String())
	}
}

// distribution reads the name and version of what lies in a folder that installers fill: "apple
// 1.1", in alphabetical order.
func distributions(t *testing.T, dir string) (found []string) {
	t.Helper()
	infos, err := filepath.Glob(filepath.Join(dir, "*.dist-info"))
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		name, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(info), ".dist-info"), "-")
		if name != "pip" && name != "setuptools" {
			found = append(found, name+" "+version)
		}
	}
	slices.Sort(found)
	return found
}

// modules reads the names in a wheel.
func members(t *testing.T, wheel []byte) (names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	return names
}

// ask sends one request through a transport that unpacks nothing; fields are names and values in
// turn.
func ask(t *testing.T, method, url string, fields ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := rawTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, body.Bytes()
}

var rawTransport = &http.Transport{DisableCompression: true}
