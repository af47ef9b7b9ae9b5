package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// unzstd unpacks with no more window than a client must have (RFC 9659).
func unzstd(t *testing.T, packed string) string {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.DecodeAll([]byte(packed), nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// C35: the encodings of a listing are representations of their own: each has its strong tag, and
// none answers for another.
func TestEncodings(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, map[string]any{"readme": strings.Repeat("long ", 1000)})
		w.public.Publish("small", "1.0.0", longAgo, nil)
		ask := func(path, accepts string, more ...string) answer {
			t.Helper()
			return w.get(path, append([]string{"Accept-Encoding", accepts}, more...)...)
		}
		tags := map[string]string{}
		plain := w.get("/npm/a")
		for accepts, want := range map[string]string{"": "", "gzip": "gzip", "gzip, deflate, br, zstd": "zstd"} {
			a := ask("/npm/a", accepts)
			w.want(a, 200, -1)
			body := a.body
			switch want {
			case "gzip":
				body = gunzip(t, body)
			case "zstd":
				body = unzstd(t, body)
			}
			tag := a.header.Get("ETag")
			if a.header.Get("Content-Encoding") != want || body != plain.body || a.header.Get("Vary") != "Accept, Accept-Encoding" {
				t.Errorf("%q: %v", accepts, a.header)
			}
			if stem := strings.TrimSuffix(plain.header.Get("ETag"), `"`); want != "" && tag != stem+"-"+want+`"` {
				t.Errorf("%q: ETag %s", accepts, tag)
			}
			tags[accepts] = tag
			head := w.do(http.MethodHead, "/npm/a", "Accept-Encoding", accepts)
			if head.header.Get("ETag") != tag || head.header.Get("Content-Length") != a.header.Get("Content-Length") || head.body != "" {
				t.Errorf("HEAD %q: %v", accepts, head.header)
			}
		}
		for accepts := range tags {
			for from, tag := range tags {
				a := ask("/npm/a", accepts, "If-None-Match", tag)
				if want := map[bool]int{true: 304, false: 200}[from == accepts]; a.status != want || a.status == 304 && (a.header.Get("ETag") != tag || a.header.Get("Content-Encoding") != "") {
					t.Errorf("%q with the tag of %q: %d %v", accepts, from, a.status, a.header)
				}
			}
		}
		if a := ask("/npm/small", "zstd, gzip"); a.header.Get("Content-Encoding") != "" || !strings.HasPrefix(a.body, "{") {
			t.Errorf("a small body: %v", a.header)
		}
	})
}
