package search_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

// A whole life of a file source against the emulator, in both profiles.
func TestLife(t *testing.T) {
	for _, profile := range []search.Profile{search.ProfilePreview, search.ProfileGA} {
		t.Run(string(profile), func(t *testing.T) {
			b := newBed(t, func(o *search.Options) { o.Service.Profile = profile })
			ctx := t.Context()
			if failed := wantCode(t, getManuals(ctx, b.client, search.Bounds{}), search.CodeHTTP); failed.Status != 404 || failed.ServiceCode != "ResourceNotFound" {
				t.Fatalf("absent source: %v", failed)
			}
			made := b.create()
			etag, err := made.ETags.Value()
			if err != nil || etag == "" || made.Status != 201 || made.RequestID == "" {
				t.Fatalf("created: %+v, %q, %v", made.Answer, etag, err)
			}
			ack, err := b.client.UploadFile(ctx, "manuals", uploadOf("hello"), search.Bounds{})
			if err != nil || ack.Status != 201 || ack.File == nil || ack.File.Name != "guide.txt" || ack.File.Bytes != 5 || ack.File.Failed {
				t.Fatalf("upload: %+v, %v", ack, err)
			}
			if !wire.SafeID(ack.File.ID) || ack.File.Metadata["ecluseOwner"] != "me" {
				t.Errorf("record: %+v", ack.File)
			}
			page, err := b.client.ListFiles(ctx, "manuals", "", search.Bounds{})
			if err != nil || len(page.Files) != 1 || page.Files[0].ID != ack.File.ID || page.Next != "" || len(page.Files[0].Fields) != 8 {
				t.Fatalf("list: %+v, %v", page, err)
			}
			status, err := b.client.GetSourceStatus(ctx, "manuals", search.Bounds{})
			if err != nil || status.Synchronization != "active" {
				t.Fatalf("status: %+v, %v", status, err)
			}
			if (status.Capacity != nil) != (profile == search.ProfileGA) {
				t.Errorf("capacity in %s: %+v", profile, status.Capacity)
			}
			if status.Capacity != nil && (status.Capacity.MaxFiles != 200 || status.Capacity.RemainingFiles != 199) {
				t.Errorf("capacity: %+v", status.Capacity)
			}
			if _, err := b.client.Get(ctx, search.Indexes, "manuals-index", search.Bounds{}); err != nil {
				t.Errorf("generated index: %v", err)
			}
			if _, err := b.client.Delete(ctx, search.KnowledgeSources, "manuals", search.IfMatch(`"other"`), search.Bounds{}); failure(t, err).Status != 412 {
				t.Errorf("stale delete: %v", err)
			}
			if gone, err := b.client.Delete(ctx, search.KnowledgeSources, "manuals", search.IfMatch(etag), search.Bounds{}); err != nil || gone.Status != 204 {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// S39: the headers of every request; a fresh id each time, and no body or resend on a read.
func TestHeadersOfEachRequest(t *testing.T) {
	b := newBed(t)
	b.create()
	_ = getManuals(t.Context(), b.client, search.Bounds{})
	_, _ = b.client.UploadFile(t.Context(), "manuals", uploadOf("hello"), search.Bounds{})
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, r := range b.emulator.Requests() {
		id := r.Headers.Get("X-Ms-Client-Request-Id")
		if !uuid.MatchString(id) || seen[id] {
			t.Errorf("%s: client request id %q is no fresh UUID", r.Method, id)
		}
		seen[id] = true
		if r.Headers.Get("Accept") != "application/json;odata.metadata=minimal" || !r.HasToken {
			t.Errorf("%s: headers %v", r.Method, r.Headers)
		}
		if r.Method == http.MethodGet && (r.BodyBytes != 0 || r.Headers.Get("Transfer-Encoding") != "" || r.Headers.Get("Content-Length") != "") {
			t.Errorf("a read sent a body: %v", r.Headers)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d requests, want 3", len(seen))
	}
}

// S39: the token is sent as a bearer token, and it is the only place where it appears.
func TestTokenIsSentOnce(t *testing.T) {
	client := over(t, transportFunc(func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+emulatortest.Token {
			t.Errorf("Authorization is %q", got)
		}
		rest := r.Header.Clone()
		rest.Del("Authorization")
		for name, values := range rest {
			if strings.Contains(strings.Join(values, " "), emulatortest.Token) || strings.Contains(r.URL.String(), emulatortest.Token) {
				t.Errorf("token in %s or in the URL", name)
			}
		}
		return nil, io.ErrUnexpectedEOF
	}))
	err := getManuals(t.Context(), client, search.Bounds{})
	if strings.Contains(err.Error(), emulatortest.Token) {
		t.Errorf("token in the error: %v", err)
	}
}

// Knowledge bases, and a source in use that cannot be deleted.
func TestKnowledgeBases(t *testing.T) {
	b := newBed(t)
	b.create()
	ctx := t.Context()
	base := `{"name":"library","knowledgeSources":[{"name":"manuals"}]}`
	if made, err := b.client.Put(ctx, search.KnowledgeBases, "library", []byte(base), search.IfAbsent(), search.Bounds{}); err != nil || made.Status != 201 {
		t.Fatalf("create base: %v", err)
	}
	if _, err := b.client.Delete(ctx, search.KnowledgeSources, "manuals", search.Condition{}, search.Bounds{}); failure(t, err).ServiceCode != "ResourceInUse" {
		t.Errorf("delete of a source in use: %v", err)
	}
	page, err := b.client.List(ctx, search.KnowledgeBases, "", search.Bounds{})
	if err != nil || len(page.Values) != 1 || page.Values[0]["name"] != "library" {
		t.Errorf("list: %+v, %v", page, err)
	}
	// S144: a generated child is not deleted by itself.
	if _, err := b.client.Delete(ctx, search.Indexes, "manuals-index", search.Condition{}, search.Bounds{}); failure(t, err).Code != search.CodeRequestInvalid {
		t.Errorf("delete of a generated child: %v", err)
	}
	if b.sent(http.MethodDelete) != 1 {
		t.Error("the delete of a child was sent")
	}
}
