package search_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

// S70, S74: content that is not the promised one never arrives whole, and is never taken for sent.
func TestUploadContentChanged(t *testing.T) {
	for name, change := range map[string]func(*wire.Upload){
		"shorter": func(u *wire.Upload) { u.Content = strings.NewReader("hell") },
		"longer":  func(u *wire.Upload) { u.Content = strings.NewReader("hello!") },
		"other":   func(u *wire.Upload) { u.Content = strings.NewReader("jello") },
		"broken":  func(u *wire.Upload) { u.Content = io.MultiReader(strings.NewReader("he"), errReader{}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.create()
			upload := uploadOf("hello")
			change(&upload)
			ack, err := b.client.UploadFile(t.Context(), "manuals", upload, search.Bounds{})
			failed := wantCode(t, err, search.CodeContentChanged)
			if ack != nil || !failed.Ambiguous || strings.Contains(err.Error(), "secret") {
				t.Errorf("ack %v, %v", ack, failed)
			}
			if files := b.emulator.State().Sources[0].Files; len(files) != 0 {
				t.Errorf("%d files stored", len(files))
			}
			for _, r := range b.emulator.Requests() {
				if r.Method == http.MethodPost && !r.BodyPartial && r.BodyBytes != 0 {
					t.Errorf("the whole body arrived: %+v", r)
				}
			}
		})
	}
}

// An upload that cannot be one is refused before anything is sent.
func TestUploadRefused(t *testing.T) {
	for name, change := range map[string]func(*wire.Upload){
		"no name":               func(u *wire.Upload) { u.Name = "" },
		"no content":            func(u *wire.Upload) { u.Content = nil },
		"empty":                 func(u *wire.Upload) { u.Bytes = 0 },
		"short digest":          func(u *wire.Upload) { u.SHA256 = "ab" },
		"no hexadecimal digest": func(u *wire.Upload) { u.SHA256 = strings.Repeat("z", 64) },
		"short fingerprint":     func(u *wire.Upload) { u.Fingerprint = "sha256:0123" },
		"upper-case":            func(u *wire.Upload) { u.Fingerprint = "sha256:" + strings.Repeat("A", 64) },
		"media type":            func(u *wire.Upload) { u.MediaType = "text/plain\r\nX: y" },
		"no media type":         func(u *wire.Upload) { u.MediaType = "" },
	} {
		upload := uploadOf("hello")
		change(&upload)
		client := over(t, transportFunc(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s: sent", name)
			return nil, io.EOF
		}))
		_, err := client.UploadFile(t.Context(), "manuals", upload, search.Bounds{})
		if failed := wantCode(t, err, search.CodeRequestInvalid); failed.Sent || failed.Ambiguous {
			t.Errorf("%s: %+v", name, failed)
		}
	}
}

// pattern is an endless content that takes no memory.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// S74: a large file streams: progress is told in order up to the end, and memory does not grow with
// the file.
func TestUploadStreams(t *testing.T) {
	const size = 16 << 20
	digest := sha256.New()
	_, _ = io.CopyN(digest, pattern{}, size)
	b := newBed(t)
	b.create()
	var last, calls int64
	upload := uploadOf("x")
	upload.Bytes, upload.SHA256, upload.Content = size, hex.EncodeToString(digest.Sum(nil)), io.LimitReader(pattern{}, size)
	upload.Progress = func(sent int64) {
		if sent <= last || sent > size {
			t.Errorf("progress went from %d to %d", last, sent)
		}
		last = sent
		calls++
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := b.client.UploadFile(t.Context(), "manuals", upload, search.Bounds{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if last != size || calls < 50 {
		t.Errorf("progress ended at %d after %d calls", last, calls)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for an upload of %d, client and server together", grown, size)
	}
	if got := b.emulator.State().Sources[0].Files[0]; got.Bytes != size || got.SHA256 != upload.SHA256 {
		t.Errorf("stored %+v", got)
	}
}

// An answer that comes before the body was sent leaves the content alone from then on, though the
// transport reads on.
func TestEarlyAnswer(t *testing.T) {
	reads := 0
	upload := uploadOf("x")
	upload.Bytes = 60 << 20
	upload.Content = readerFunc(func(p []byte) (int, error) { reads++; return len(p), nil })
	var body io.Reader
	client := over(t, transportFunc(func(r *http.Request) (*http.Response, error) {
		body = r.Body
		if _, err := io.CopyN(io.Discard, body, 4096); err != nil {
			t.Error(err)
		}
		return &http.Response{StatusCode: 429, Body: text(""), Request: r}, nil
	}))
	_, err := client.UploadFile(t.Context(), "manuals", upload, search.Bounds{})
	if failed := wantCode(t, err, search.CodeHTTP); failed.Status != 429 {
		t.Fatal(err)
	}
	before := reads
	if n, err := body.Read(make([]byte, 512)); n != 0 || err == nil || reads != before {
		t.Errorf("read %d bytes of the content after the method returned, %v", n, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// S77: what an acknowledgement may lack without being a failure.
func TestUploadAcknowledgements(t *testing.T) {
	for _, c := range []struct {
		body, code string
		file       bool
	}{
		{``, "", false},
		{`{}`, "", true},
		{`{"fileId":"f1"}`, "", true},
		{`{"fileId":7}`, "", false},
		{`{"fileId":"f1","errorMessage":"no text"}`, "", true},
		{`nonsense`, search.CodeInvalidJSON, false},
		{`{"fileId":"a","fileId":"b"}`, search.CodeInvalidJSON, false},
	} {
		ack, err := over(t, canned(201, text(c.body), "request-id", "r1")).UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
		if ack == nil || ack.Status != 201 || ack.RequestID != "r1" {
			t.Fatalf("%q: ack %+v, %v", c.body, ack, err)
		}
		if (ack.File != nil) != c.file || ack.BodyUnreadable != (c.code != "") {
			t.Errorf("%q: %+v", c.body, ack)
		}
		if c.code != "" {
			wantCode(t, err, c.code)
		} else if err != nil {
			t.Errorf("%q: %v", c.body, err)
		}
	}
	failed, _ := over(t, canned(201, text(`{"errorMessage":"x"}`))).UploadFile(t.Context(), "manuals", uploadOf("x"), search.Bounds{})
	if !failed.File.Failed || failed.File.Bytes != -1 {
		t.Errorf("a failed record: %+v", failed.File)
	}
}
