package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// S60, S61: an inventory of several pages, each by its own call, links followed exactly as given.
func TestPages(t *testing.T) {
	b := newBed(t)
	b.create()
	for i := range 5 {
		upload := uploadOf("hello")
		upload.Name = fmt.Sprintf("f%d.txt", i)
		if _, err := b.client.UploadFile(t.Context(), "manuals", upload, search.Bounds{}); err != nil {
			t.Fatal(err)
		}
	}
	base := b.client.Service().Endpoint.String()
	odd := base + "/knowledgesources('manuals')/files?$skiptoken=a%2Bb+c&api-version=2026-10-01&x=%7e"
	b.script(`[{"match":{"path":"/files","nth":1},"act":{"body":{"value":[{"fileId":"a","fileName":"f.txt"}],"@odata.nextLink":"` + odd + `"}}}]`)
	first, err := b.client.ListFiles(t.Context(), "manuals", "", search.Bounds{})
	if err != nil || first.Next != odd {
		t.Fatalf("%+v, %v", first, err)
	}
	trail, err := search.NewTrail(base + "/knowledgesources('manuals')/files?api-version=2026-10-01&pageSize=200")
	if err != nil {
		t.Fatal(err)
	}
	if err := trail.Follow(first.Next); err != nil {
		t.Fatal(err)
	}
	// the token means nothing to the emulator
	_, _ = b.client.ListFiles(t.Context(), "manuals", first.Next, search.Bounds{})
	seen := b.emulator.Requests()
	if last := seen[len(seen)-1]; base+last.Path+"?"+last.Query != odd {
		t.Errorf("the link was sent as %s?%s", last.Path, last.Query)
	}
}

// S61: a link that leads elsewhere gets no request and no token, even if the caller forgot to check
// it.
func TestForeignLink(t *testing.T) {
	b, elsewhere := newBed(t), newBed(t)
	link := elsewhere.client.Service().Endpoint.String() + "/knowledgesources('manuals')/files?api-version=2026-10-01"
	_, err := b.client.ListFiles(t.Context(), "manuals", link, search.Bounds{})
	wantCode(t, err, search.CodeContinuationInvalid)
	_, err = b.client.List(t.Context(), search.KnowledgeSources, link, search.Bounds{})
	wantCode(t, err, search.CodeContinuationInvalid)
	if len(elsewhere.emulator.Requests())+len(b.emulator.Requests()) != 0 {
		t.Error("a request was sent")
	}
}

// S62: what is no page of file records, and how large a page may be.
func TestOddPages(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, code string
	}{
		{200, `{"value":[]}`, ""},
		{200, `{"value":[{}]}`, ""},
		{200, `{"value":[],"@odata.nextLink":null}`, ""},
		{200, `{}`, search.CodeFileListInvalid},
		{200, `{"value":null}`, search.CodeFileListInvalid},
		{200, `{"value":{}}`, search.CodeFileListInvalid},
		{200, `{"value":[1]}`, search.CodeFileListInvalid},
		{200, `{"value":[null]}`, search.CodeFileListInvalid},
		{200, `{"value":[],"@odata.nextLink":7}`, search.CodeFileListInvalid},
		{200, `{"value":[{"fileId":7}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"fileSizeBytes":1.5}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"fileSizeBytes":-1}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"fileSizeBytes":"5"}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"metadata":{"a":1}}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"metadata":[]}]}`, search.CodeFileListInvalid},
		{200, `{"value":[{"errorMessage":{}}]}`, search.CodeFileListInvalid},
		{204, ``, search.CodeFileListInvalid},
		{200, `[]`, search.CodeInvalidJSON},
		{200, `{"value":[{"fileId":"a","fileId":"b"}]}`, search.CodeInvalidJSON},
		{200, `{"value":[{"fileName":"` + strings.Repeat("x", 1<<20) + `"}]}`, search.CodeTooLarge},
		{503, ``, search.CodeHTTP},
		{429, ``, search.CodeHTTP},
	} {
		page, err := over(t, canned(c.status, text(c.body))).ListFiles(t.Context(), "manuals", "", search.Bounds{})
		if c.code == "" {
			if err != nil || page == nil {
				t.Errorf("%s: %v", c.body, err)
			}
			continue
		}
		if failed := wantCode(t, err, c.code); page != nil || failed.Status != c.status || failed.Ambiguous {
			t.Errorf("%.60s: %+v, %+v", c.body, page, failed)
		}
	}
}

// S78: the capacity of a source is read whole or not at all.
func TestFileCapacity(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"fileCapacity":{"maxFileCount":200,"remainingFileCount":3,"maxFileSizeBytes":52428800}}`: true,
		`{"fileCapacity":{"maxFileCount":200,"remainingFileCount":3}}`:                             false,
		`{"fileCapacity":{"maxFileCount":200,"remainingFileCount":-1,"maxFileSizeBytes":1}}`:       false,
		`{"fileCapacity":{"maxFileCount":1.5,"remainingFileCount":1,"maxFileSizeBytes":1}}`:        false,
	} {
		status, err := over(t, canned(200, text(body))).GetSourceStatus(t.Context(), "manuals", search.Bounds{})
		if !ok {
			wantCode(t, err, search.CodeInvalidJSON)
		} else if err != nil || status.Capacity.RemainingFiles != 3 || status.Capacity.MaxFileBytes != 52428800 {
			t.Errorf("%+v, %v", status, err)
		}
	}
	absent, err := over(t, canned(200, text(`{"synchronizationStatus":"active"}`))).GetSourceStatus(t.Context(), "manuals", search.Bounds{})
	if err != nil || absent.Capacity != nil || absent.Kind != "" {
		t.Errorf("%+v, %v", absent, err)
	}
}
