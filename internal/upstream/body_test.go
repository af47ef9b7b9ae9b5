package upstream_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// A body that is kept takes little more than its length, however it came: without a length, and
// packed better or worse than guessed. Area memory.
func TestBodyHoldsNoSpareRoom(t *testing.T) {
	for _, plain := range [][]byte{
		bytes.Repeat([]byte("x"), 3<<20), bytes.Repeat([]byte("0123456789abcde"), 1000), []byte("{}"),
	} {
		for _, encoding := range []string{"", "gzip"} {
			body := plain
			if encoding != "" {
				var packed bytes.Buffer
				w, _ := gzip.NewWriterLevel(&packed, gzip.NoCompression)
				_, _ = w.Write(plain)
				_ = w.Close()
				body = packed.Bytes()
			}
			for _, length := range []int64{-1, int64(len(body))} {
				resp := &http.Response{
					Header: http.Header{"Content-Encoding": {encoding}}, ContentLength: length, Body: io.NopCloser(bytes.NewReader(body)),
				}
				got, err := upstream.ReadBody(resp, 64<<20)
				if err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("%q, length %d: %d bytes, %v", encoding, length, len(got), err)
				}
				// 4 KB and more are rounded up by the runtime, by less than a fifth
				if spare := cap(got) - len(got); spare > len(got)/4+16 {
					t.Errorf("%q, length %d: %d bytes and room for %d more", encoding, length, len(got), spare)
				}
			}
		}
	}
}
