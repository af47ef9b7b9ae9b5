package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// What uv sends: three media types with quality values for a page, and then what it needs of a
// wheel: its companion where the page names one, or else HEAD and the end of the file.
const uvAccept = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"

// uvPage is what uv reads of a page.
type uvPage struct {
	Meta  struct{ APIVersion string } `json:"meta"`
	Files []struct {
		Filename, URL  string
		Hashes         map[string]string
		Core           any    `json:"core-metadata"`
		RequiresPython string `json:"requires-python"`
		Size           int
		UploadTime     string `json:"upload-time"`
		Yanked         any
	}
	Versions []string
}

// uv cannot be installed here, so its requests are replayed by hand: page, companion first, wheel
// with its ETag, and the same with the HTML form that it takes from indexes without JSON.
func TestUVRequests(t *testing.T) {
	o := newOrchard(t)
	bare := o.public.file(t, "bare", "bare-1.0-py3-none-any.whl")
	o.public.GzipCompanions = true
	g := serveGate(t, o.config(""))
	page := uvListing(t, g.pypi()+"apple/")
	if len(page.Files) != 5 || len(page.Versions) != 4 {
		t.Errorf("page: %+v", page)
	}
	for _, f := range page.Files {
		published := o.public.file(t, "apple", f.Filename)
		// C14, C76
		if f.Hashes["sha256"] != fakepypi.Sum(published.Content) || f.Size != len(published.Content) || f.UploadTime == "" {
			t.Errorf("%+v", f)
		}
		if strings.HasPrefix(f.Filename, "apple-1.2") && f.Yanked != yankText { // C64
			t.Errorf("yanked: %q", f.Yanked)
		}
		if strings.HasPrefix(f.Filename, "apple-1.3") {
			t.Errorf("a release that is too young is listed: %+v", f)
		}
		if !strings.HasSuffix(f.Filename, ".whl") {
			continue
		}
		core, _ := f.Core.(map[string]any)
		resp, metadata := ask(t, http.MethodGet, f.URL+".metadata", "Accept-Encoding", "gzip, br")
		// C17
		if resp.StatusCode != http.StatusOK || !bytes.Equal(metadata, published.Metadata) || core["sha256"] != fakepypi.Sum(metadata) {
			t.Errorf("%s %q against %v", resp.Status, metadata, f.Core)
		}
	}
	if n := o.public.Files.CountSuffix(".whl"); n != 0 {
		t.Errorf("%d wheels were fetched for their metadata", n)
	}
	uvWithoutCompanion(t, uvListing(t, g.pypi()+"bare/"), bare)
	if resp, _ := ask(t, http.MethodGet, g.pypi()+"../files/bare/"+bare.Name+".metadata"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a companion that nobody published: %s", resp.Status)
	}
	o.counted(t, g)
	o.noSecrets(t)
}

// uvListing asks for a page as uv does, packed, and then again with the validator.
func uvListing(t *testing.T, url string) (page uvPage) {
	t.Helper()
	resp, body := ask(t, http.MethodGet, url, "Accept", uvAccept, "Accept-Encoding", "gzip, br", "User-Agent", "uv/0.8.0")
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(body, &page); err != nil || resp.Header.Get("Content-Type") != "application/vnd.pypi.simple.v1+json" {
		t.Fatalf("%s %v: %v\n%s", resp.Status, resp.Header, err, body)
	}
	again, _ := ask(t, http.MethodGet, url, "Accept", uvAccept, "Accept-Encoding", "gzip, br", "If-None-Match", resp.Header.Get("Etag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("revalidation of the page: %s", again.Status)
	}
	html, text := ask(t, http.MethodGet, url, "Accept", "text/html")
	if !strings.HasPrefix(html.Header.Get("Content-Type"), "text/html") || strings.Count(string(text), "<a ") != len(page.Files) || html.Header.Get("Etag") == resp.Header.Get("Etag") {
		t.Errorf("the other form: %v\n%s", html.Header, text)
	}
	return page
}

// uvWithoutCompanion does what uv and pip's lazy wheel do when a page names no companion: HEAD for
// the length, then the last bytes. An answer with the whole file instead of the range is allowed
// (RFC 9110, section 14.2), a wrong part is not.
func uvWithoutCompanion(t *testing.T, page uvPage, bare fakepypi.File) {
	t.Helper()
	f := page.Files[0]
	if f.Core != nil && f.Core != false {
		t.Errorf("a companion is advertised: %v", f.Core)
	}
	head, body := ask(t, http.MethodHead, f.URL, "Accept-Encoding", "identity")
	if head.StatusCode != http.StatusOK || head.ContentLength != int64(len(bare.Content)) || len(body) != 0 {
		t.Errorf("HEAD: %s, length %d of %d", head.Status, head.ContentLength, len(bare.Content))
	}
	start := len(bare.Content) - 16384
	tail := func() int {
		part, got := ask(t, http.MethodGet, f.URL, "Range", "bytes="+strconv.Itoa(start)+"-"+strconv.Itoa(len(bare.Content)-1), "Accept-Encoding", "identity")
		switch {
		case part.StatusCode == http.StatusOK && bytes.Equal(got, bare.Content):
		case part.StatusCode == http.StatusPartialContent && bytes.Equal(got, bare.Content[start:]) && part.Header.Get("Content-Range") != "":
		default:
			t.Fatalf("a range: %s %v with %d bytes", part.Status, part.Header, len(got))
		}
		return part.StatusCode
	}
	tail() // which brings the file into the cache, from where ranges are served
	until(t, "a range of a kept file", func() bool { return tail() == http.StatusPartialContent })
	whole, content := ask(t, http.MethodGet, f.URL)
	if whole.StatusCode != http.StatusOK || !bytes.Equal(content, bare.Content) {
		t.Errorf("%s with %d bytes", whole.Status, len(content))
	}
	if names := members(t, content); len(names) < 4 {
		t.Errorf("members: %q", names)
	}
}
