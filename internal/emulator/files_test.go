package emulator_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator"
)

const png = "\x89PNG\r\n\x1a\n and so on"

// What an upload can be refused for; a refused one leaves no record.
func TestRefusedUploads(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	for _, c := range []struct {
		name, content string
		status        int
		code          string
	}{
		{"a.txt", "", 400, "EmptyFile"},
		{"a.txt", " \n\t ", 400, "NoExtractableText"},
		{"/a.txt", "x", 400, "InvalidFileName"},
		{`\a.txt`, "x", 400, "InvalidFileName"},
		{"../a.txt", "x", 400, "InvalidFileName"},
		{"a/./b.txt", "x", 400, "InvalidFileName"},
		{"a//b.txt", "x", 400, "InvalidFileName"},
		{"a/", "x", 400, "InvalidFileName"},
		{"c:a.txt", "x", 400, "InvalidFileName"},
		{"a.exe", "\x7fELF\x02", 415, "UnsupportedFileType"},
		{"a.txt", "MZ\x90", 415, "UnsupportedFileType"}, // the content decides, not the name
		{"a.png", png, 415, "UnsupportedFileType"},
	} {
		if got := s.upload("manuals", c.name, c.content); got.status != c.status || got.code() != c.code {
			t.Errorf("%q %.10q: %d %s, want %d %s", c.name, c.content, got.status, got.code(), c.status, c.code)
		}
	}
	if files := s.emulator.State().Sources[0].Files; len(files) != 0 {
		t.Errorf("refused uploads left %v", files)
	}
	for _, parts := range [][]string{
		{"content", "x"},
		{"metadata", `{"fileName":"a"}`},
		{"metadata", `{"fileName":"a"}`, "content", "x", "content", "y"},
		{"metadata", `{"fileName":"a"}`, "content", "x", "extra", "y"},
		{"metadata", `{"fileName":"a","metadata":{"k":1}}`, "content", "x"},
		{"metadata", `{"fileName":"a","other":1}`, "content", "x"},
		{"metadata", `nonsense`, "content", "x"},
		{"metadata", `{"fileName":"` + strings.Repeat("a", 70<<10) + `"}`, "content", "x"},
	} {
		body, kind := multipartBody(t, parts...)
		if got := s.do("POST", filesOf("manuals"), body, "Content-Type", kind); got.status != 400 {
			t.Errorf("parts %.80q: %d", parts, got.status)
		}
	}
	if got := s.do("POST", filesOf("absent"), "x"); got.status != 404 {
		t.Errorf("no such source: %d", got.status)
	}
}

// Images need more than minimal extraction.
func TestImageUnderStandard(t *testing.T) {
	s := start(t, emulator.Options{})
	s.do("PUT", at("pictures"), `{"kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"standard"}}}`)
	if got := s.upload("pictures", "a.png", png); got.status != 201 || got.body["extractionMode"] != "standard" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

// Raw uploads went out with the preview.
func TestRawUpload(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	raw := func(version string) result {
		return s.do("POST", "/knowledgesources('manuals')/files?api-version="+version, "hello",
			"Content-Type", "application/octet-stream", "Content-Disposition", `attachment; filename="raw.txt"`)
	}
	if got := raw(emulator.VersionPreview); got.status != 201 || got.body["fileName"] != "raw.txt" {
		t.Errorf("preview: %d %s", got.status, got.raw)
	}
	if got := raw(emulator.VersionGA); got.status != 415 {
		t.Errorf("GA: %d", got.status)
	}
}

// The number of files of a source is limited, also when uploads race, and the status of GA tells
// what is left.
func TestFileLimit(t *testing.T) {
	s := start(t, emulator.Options{MaxFiles: 5})
	s.createFileSource("manuals")
	statuses := make(chan int, 12)
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() { statuses <- s.upload("manuals", fmt.Sprintf("f%d.txt", i), "x").status })
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[201] != 5 || count[409] != 7 {
		t.Errorf("answers: %v", count)
	}
	if got := s.upload("manuals", "more.txt", "x"); got.code() != "FileLimitReached" {
		t.Errorf("code %q", got.code())
	}
	status := s.do("GET", "/knowledgesources('manuals')/status?"+version, "")
	if capacity, _ := status.body["fileCapacity"].(map[string]any); capacity["maxFileCount"] != 5.0 || capacity["remainingFileCount"] != 0.0 || capacity["maxFileSizeBytes"] != 50.0*(1<<20) {
		t.Errorf("status: %s", status.raw)
	}
	preview := s.do("GET", "/knowledgesources('manuals')/status?api-version="+emulator.VersionPreview, "")
	if _, given := preview.body["fileCapacity"]; given || preview.body["synchronizationStatus"] != "active" {
		t.Errorf("preview status: %s", preview.raw)
	}
}

// A file over the size limit is refused, one of exactly the limit is not; the tier sets the limit
// and an option lowers it.
func TestFileTooLarge(t *testing.T) {
	s := start(t, emulator.Options{MaxFileBytes: 1000})
	s.createFileSource("manuals")
	if got := s.upload("manuals", "big.txt", strings.Repeat("z", 1001)); got.status != 413 || got.code() != "FileTooLarge" {
		t.Errorf("%d %s", got.status, got.raw)
	}
	if got := s.upload("manuals", "fits.txt", strings.Repeat("z", 1000)); got.status != 201 {
		t.Errorf("%d %s", got.status, got.raw)
	}
	for _, c := range []struct {
		tier  string
		lower int64
		want  float64
	}{{"free", 0, 50 << 20}, {"s1", 0, 100 << 20}, {"s1", 1000, 1000}, {"basic", 200 << 20, 50 << 20}} {
		s := start(t, emulator.Options{Tier: c.tier, MaxFileBytes: c.lower})
		s.createFileSource("manuals")
		status := s.do("GET", "/knowledgesources('manuals')/status?"+version, "")
		if capacity, _ := status.body["fileCapacity"].(map[string]any); capacity["maxFileSizeBytes"] != c.want {
			t.Errorf("%+v: %s", c, status.raw)
		}
	}
}

// Replacing keeps the id, deleting forgets it.
func TestReplaceAndDelete(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	id, _ := s.upload("manuals", "a.txt", "one").body["fileId"].(string)
	one := "/knowledgesources('manuals')/files('" + id + "')?" + version
	body, kind := multipartBody(t, "metadata", `{"fileName":"a.txt"}`, "content", "three")
	if got := s.do("PUT", one, body, "Content-Type", kind); got.status != 200 || got.body["fileId"] != id || got.body["fileSizeBytes"] != 5.0 {
		t.Errorf("replace: %d %s", got.status, got.raw)
	}
	if got := s.do("PUT", "/knowledgesources('manuals')/files('none')?"+version, body, "Content-Type", kind); got.status != 404 {
		t.Errorf("replace of an absent file: %d", got.status)
	}
	plain := "/knowledgesources/manuals/files/" + id + "?" + version
	if got := s.do("DELETE", plain, ""); got.status != 204 {
		t.Errorf("delete: %d", got.status)
	}
	if got := s.do("DELETE", plain, ""); got.status != 404 {
		t.Errorf("second delete: %d", got.status)
	}
}

// Files are listed in order of arrival, paged, by prefix and by search; a link goes on where the
// page ended, even when files arrive in between.
func TestFilePages(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	for _, name := range []string{"g/3.txt", "g/1.txt", "h/9.txt", "g/2.txt"} {
		if got := s.upload("manuals", name, "x"); got.status != 201 {
			t.Fatalf("%s: %s", name, got.raw)
		}
	}
	list := func(query string) string {
		var names []string
		next := filesOf("manuals") + query
		for pages := 0; next != "" && pages < 10; pages++ {
			got := s.do("GET", next, "")
			if got.status != 200 {
				t.Fatalf("%s: %d %s", next, got.status, got.raw)
			}
			for _, v := range got.body["value"].([]any) {
				names = append(names, v.(map[string]any)["fileName"].(string))
			}
			if next, _ = got.body["@odata.nextLink"].(string); next != "" && pages == 0 && query == "&pageSize=3" {
				s.upload("manuals", "late.txt", "x")
			}
		}
		return strings.Join(names, " ")
	}
	for query, want := range map[string]string{
		"":                              "g/3.txt g/1.txt h/9.txt g/2.txt",
		"&pageSize=1":                   "g/3.txt g/1.txt h/9.txt g/2.txt",
		"&pageSize=2&prefix=g/":         "g/3.txt g/1.txt g/2.txt",
		"&pageSize=1&search=2":          "g/2.txt",
		"&pageSize=1&prefix=g/&search=": "g/3.txt g/1.txt g/2.txt",
		"&prefix=none":                  "",
	} {
		if got := list(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := list("&pageSize=3"); got != "g/3.txt g/1.txt h/9.txt g/2.txt late.txt" {
		t.Errorf("with a late file: %q", got)
	}
	if got := s.do("GET", filesOf("manuals")+"&$skiptoken=x&pageSize=2", ""); got.status != 400 {
		t.Errorf("token with pageSize: %d", got.status)
	}
}
