package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// takeUploads lets the index take uploads at /legacy/ from one user, and look at them as closely as
// a real index does: the fields that the form needs, the digest, and that no file comes twice.
func (x *index) takeUploads(t *testing.T, user, password string) {
	x.Index.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/legacy/" {
			return false
		}
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			http.Error(w, "who are you?", http.StatusForbidden)
			return true
		}
		if err := r.ParseMultipartForm(32 << 20); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		part, header, err := r.FormFile("content")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		content, _ := io.ReadAll(part)
		sum := sha256.Sum256(content)
		form := r.MultipartForm.Value
		for field, want := range map[string]string{":action": "file_upload", "protocol_version": "1", "sha256_digest": hex.EncodeToString(sum[:])} {
			if got := form[field]; len(got) != 1 || got[0] != want {
				t.Errorf("upload of %s: %s is %q, want %q", header.Filename, field, got, want)
			}
		}
		for _, field := range []string{"name", "version", "filetype", "pyversion", "metadata_version"} {
			if len(form[field]) != 1 || form[field][0] == "" {
				http.Error(w, "no "+field, http.StatusBadRequest)
				return true
			}
		}
		name, twice := form["name"][0], false
		x.Change(name, func(p *fakepypi.Project) {
			twice = slices.ContainsFunc(p.Files, func(f fakepypi.File) bool { return f.Name == header.Filename })
		})
		if twice {
			http.Error(w, "File already exists.", http.StatusBadRequest)
			return true
		}
		x.Publish(name, fakepypi.File{Name: header.Filename, Version: form["version"][0], Content: content})
		return true
	})
}

func uploads(x *index) (n int) {
	for _, s := range x.Index.Seen() {
		if s.Method == http.MethodPost {
			n++
		}
	}
	return n
}

// What pip took is uploaded to your own index with the metadata that the files themselves hold;
// then the public index goes away for good, and a new gate installs the same from that one alone.
func TestPyPIMirrorOutlivesThePublicIndex(t *testing.T) {
	t.Parallel()
	public, own := startIndex(t), startIndex(t)
	own.RelativeLinks = true
	public.Publish("pear", fakepypi.Wheel("pear", "1.0"))
	public.Publish("apple", fakepypi.Wheel("apple", "1.1", fakepypi.Requires("pear>=0.9")), fakepypi.Sdist("apple", "1.1"))
	own.takeUploads(t, "ann", "a secret")
	secrets := t.TempDir()
	write(t, secrets, "user", "ann\n")
	write(t, secrets, "password", "a secret\n")
	config := func(index, files string) string {
		return fmt.Sprintf("mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '%s/simple/', files: ['%s'], private: '%s/simple/', "+
			"mirror: {url: '%s/legacy/', usernameFile: '%s', passwordFile: '%s'}}\n", index, files, own.url, own.url,
			filepath.Join(secrets, "user"), filepath.Join(secrets, "password"))
	}
	g := serveGate(t, config(public.url, public.files))
	p := pips(t)[0]
	want := []string{"apple 1.1", "pear 1.0"}
	if got, _ := p.target(t, newSandbox(t), g.pypi(), "apple"); !slices.Equal(got, want) {
		t.Errorf("installed %q", got)
	}
	p.must(t, newSandbox(t), g.pypi(), "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "apple")
	until(t, "the mirror jobs", func() bool { return g.queue(t).Done == 3 })
	asked := public.Index.Count() + public.Files.Count()

	gone := "http://" + freeAddress(t)
	again := serveGate(t, config(gone, gone))
	if got, _ := p.target(t, newSandbox(t), again.pypi(), "apple"); !slices.Equal(got, want) {
		t.Errorf("installed from the mirror: %q", got)
	}
	if n := uploads(own); n != 3 {
		t.Errorf("%d uploads, want one for each file", n)
	}
	if n := public.Index.Count() + public.Files.Count(); n != asked {
		t.Errorf("the public index was asked %d times", n-asked)
	}
}

// twine uploads a first-party project through the gate, and is refused for any other.
func TestTwine(t *testing.T) {
	t.Parallel()
	twine := command(t, "twine")
	public, own := startIndex(t), startIndex(t)
	own.RelativeLinks = true
	own.takeUploads(t, "ann", "a secret")
	g := serveGate(t, fmt.Sprintf("mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '%s/simple/', files: ['%s'], private: '%s/simple/', "+
		"firstParty: [acme-tool], publish: {url: '%s/legacy/'}}\n", public.url, public.files, own.url, own.url))
	upload := func(name, password string) result {
		s := newSandbox(t)
		wheel := fakepypi.Wheel(name, "1.0")
		write(t, s.dir, wheel.Name, string(wheel.Content))
		return play(t, s.dir, s.env, twine, "upload", "--non-interactive", "--disable-progress-bar", "--repository-url",
			strings.TrimSuffix(g.pypi(), "simple/")+"legacy/", "-u", "ann", "-p", password, wheel.Name)
	}
	if r := upload("acme-tool", "a secret"); r.code != 0 {
		t.Fatalf("upload: %s", r.output)
	}
	if got, _ := pips(t)[0].target(t, newSandbox(t), g.pypi(), "acme-tool"); !slices.Equal(got, []string{"acme_tool 1.0"}) {
		t.Errorf("installed %q", got)
	}
	before := uploads(own)
	if r := upload("requests", "a secret"); r.code == 0 || !strings.Contains(r.output, "403") {
		t.Errorf("a public project: %d %s", r.code, r.output)
	}
	if n := uploads(own); n != before {
		t.Errorf("the target heard of a public project")
	}
	if r := upload("acme-tool", "a secret"); r.code == 0 || !strings.Contains(r.output, "400") {
		t.Errorf("the same file again: %d %s", r.code, r.output)
	}
	if r := upload("acme-tool", "wrong"); r.code == 0 || !strings.Contains(r.output, "403") {
		t.Errorf("a wrong password: %d %s", r.code, r.output)
	}
}
