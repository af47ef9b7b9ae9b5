package documents

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// A rendering serves until its time is past or the rules change; each form is one of its own. An
// error is nobody's rendering.
func TestRenderingIsKept(t *testing.T) {
	d := newMemoryOnly(t, 64<<20)
	now := time.Unix(1e9, 0)
	e := d.read("a", 3, now)
	made := 0
	ask := func(now time.Time, form, rules string, until time.Time, failed error) (*Rendered, error) {
		return e.Rendering(now, Form{form, "http://gate.test"}, rules, func() (registry.Rendering, time.Time, error) {
			made++
			return registry.Rendering{Body: []byte(form + rules), ContentType: "text/plain"}, until, failed
		})
	}
	for i, c := range []struct {
		now         time.Time
		form, rules string
		made        int
	}{
		{now, "full", "old", 1},
		{now.Add(time.Hour - 1), "full", "old", 1},
		{now.Add(time.Hour), "full", "old", 2}, // a version comes of age
		{now, "short", "old", 3},
		{now, "full", "old", 3},
		{now, "full", "new", 4},
		{now, "full", "new", 4},
	} {
		r, err := ask(c.now, c.form, c.rules, now.Add(time.Hour+time.Duration(made)), nil)
		if err != nil || made != c.made || string(r.Body(Identity)) != c.form+c.rules || r.ContentType() != "text/plain" {
			t.Errorf("%d: made %d, %v", i, made, err)
		}
	}
	refused := errors.New("refused")
	if _, err := ask(now, "other", "old", now, refused); !errors.Is(err, refused) {
		t.Error(err)
	}
	if _, err := ask(now, "other", "old", now, nil); err != nil {
		t.Error(err)
	}
}

// Every encoding of a rendering is the same text under a tag of its own, and a degraded one has
// tags that never answer for the complete one (R43, R49).
func TestEncodings(t *testing.T) {
	small := NewRendered(registry.Rendering{Body: []byte("small")}, nil)
	body := bytes.Repeat([]byte("the same again, "), 20_000)
	r := NewRendered(registry.Rendering{Body: body, ContentType: "text/html"}, small)
	if small.Packs() || !r.Packs() {
		t.Error("what packs")
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(r.Body(Gzip)))
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(bytes.NewReader(r.Body(Zstd)))
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	for _, from := range []io.Reader{unzipped, decoder, bytes.NewReader(r.Body(Identity))} {
		if got, err := io.ReadAll(from); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	seen := map[string]bool{}
	for _, form := range []*Rendered{r, r.Marked(), small} {
		for _, e := range []Encoding{Identity, Gzip, Zstd} {
			seen[form.ETag(e)] = true
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d tags", len(seen))
	}
	if other := r.As("text/plain"); other.ContentType() != "text/plain" || r.ContentType() != "text/html" || other.ETag(Gzip) != r.ETag(Gzip) {
		t.Error("the other media type")
	}
}
