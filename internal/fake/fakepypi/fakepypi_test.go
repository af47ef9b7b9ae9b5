package fakepypi_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

func TestRegistry(t *testing.T) {
	r := fakepypi.New("https://files.example")
	wheel := fakepypi.Wheel("demo-x", "1.0", fakepypi.Requires("other>=1"), fakepypi.RequiresPython(">=3.6"), fakepypi.Yanked("broken <x>"))
	r.Publish("demo-x", wheel, fakepypi.Sdist("demo-x", "1.1"))

	page := get(r.Index, "/simple/demo-x/", "Accept", "application/vnd.pypi.simple.v1+json")
	var doc struct {
		Name  string
		Files []struct {
			Filename, URL string
			Hashes        map[string]string
			Core          any `json:"core-metadata"`
			Yanked        any
		}
	}
	if err := json.Unmarshal(page.Body.Bytes(), &doc); err != nil || len(doc.Files) != 2 {
		t.Fatalf("%v: %s", err, page.Body)
	}
	if f := doc.Files[0]; f.Filename != "demo_x-1.0-py3-none-any.whl" || f.URL != "https://files.example"+fakepypi.Path(wheel) || f.Yanked != "broken <x>" {
		t.Errorf("%+v", f)
	}
	if text := get(r.Index, "/simple/demo-x/").Body.String(); !strings.Contains(text, `data-yanked="broken &lt;x&gt;"`) || !strings.Contains(text, "#sha256="+fakepypi.Sum(wheel.Content)) {
		t.Errorf("%s", text)
	}
	if again := get(r.Index, "/simple/demo-x/", "Accept", "application/vnd.pypi.simple.v1+json", "If-None-Match", page.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("revalidation: %d", again.Code)
	}
	if moved := get(r.Index, "/simple/demo-x"); moved.Code != http.StatusMovedPermanently {
		t.Errorf("without a slash: %d", moved.Code)
	}
	if absent := get(r.Index, "/simple/absent/"); absent.Code != http.StatusNotFound {
		t.Errorf("an absent project: %d", absent.Code)
	}

	if part := get(r.Files, fakepypi.Path(wheel), "Range", "bytes=-22"); part.Code != http.StatusPartialContent || part.Body.Len() != 22 {
		t.Errorf("range: %d with %d bytes", part.Code, part.Body.Len())
	}
	r.GzipCompanions = true
	packed := get(r.Files, fakepypi.Path(wheel)+".metadata")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if metadata, err := io.ReadAll(z); err != nil || !bytes.Equal(metadata, wheel.Metadata) || !strings.Contains(string(metadata), "Requires-Dist: other>=1") {
		t.Errorf("%v: %s", err, metadata)
	}

	r.Files.Always(429, "Retry-After", "7")
	if held := get(r.Files, fakepypi.Path(wheel)); held.Code != 429 || held.Header().Get("Retry-After") != "7" {
		t.Errorf("scripted: %d", held.Code)
	}
	if n := r.Files.CountSuffix(".whl"); n != 2 || r.Files.Count() != 3 || r.Index.Count() != 5 {
		t.Errorf("recorded %d wheels, %d files, %d pages", n, r.Files.Count(), r.Index.Count())
	}
}

func TestWheelIsTheSameEachTimeAndAWheel(t *testing.T) {
	a, b := fakepypi.Wheel("demo", "2.0", fakepypi.Padding(4096)), fakepypi.Wheel("demo", "2.0", fakepypi.Padding(4096))
	if !bytes.Equal(a.Content, b.Content) || len(a.Content) < 4096 {
		t.Fatal("two builds differ, or the padding is missing")
	}
	z, err := zip.NewReader(bytes.NewReader(a.Content), int64(len(a.Content)))
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := z.Open("demo-2.0.dist-info/METADATA")
	if err != nil {
		t.Fatal(err)
	}
	if inside, err := io.ReadAll(metadata); err != nil || !bytes.Equal(inside, a.Metadata) {
		t.Errorf("the companion is not what is in the wheel: %v", err)
	}
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
