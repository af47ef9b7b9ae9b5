package payload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ecluse-gate/ecluse/internal/payload"
	vocabulary "github.com/ecluse-gate/ecluse/internal/registry"
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
				got, err := payload.Read(resp, 64<<20)
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

// A packed body says at its end how long its text is. One that says too little or too much is read
// all the same, as far as the bound.
func TestBodyThatLiesAboutItsLength(t *testing.T) {
	pack := func(text string) []byte {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return packed.Bytes()
	}
	long := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		body  []byte
		limit int64
		want  string
		err   error
	}{
		"two members":            {append(pack(long), pack("x")...), 20_000, long + "x", nil},
		"at the bound":           {append(pack(long), pack("x")...), 10_001, long + "x", nil},
		"over the bound":         {append(pack(long), pack("x")...), 10_000, "", vocabulary.ErrTooLarge},
		"many members":           {bytes.Repeat(pack(long), 100), 999_999, "", vocabulary.ErrTooLarge},
		"one over the bound":     {pack(long), 9_999, "", vocabulary.ErrTooLarge},
		"packed, over the bound": {pack(long), 30, "", vocabulary.ErrTooLarge},
		"a wrong length":         {append(pack(long)[:len(pack(long))-4], 255, 255, 255, 255), 20_000, "", vocabulary.ErrMalformed},
		"shorter than a length":  {[]byte{31, 139}, 20_000, "", vocabulary.ErrMalformed},
		"nothing":                {nil, 20_000, "", vocabulary.ErrMalformed},
	} {
		for _, length := range []int64{-1, int64(len(c.body))} {
			resp := &http.Response{
				Header: http.Header{"Content-Encoding": {"gzip"}}, ContentLength: length, Body: io.NopCloser(iotest.OneByteReader(bytes.NewReader(c.body))),
			}
			got, err := payload.Read(resp, c.limit)
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%s, length %d: %d bytes, %v", name, length, len(got), err)
			}
		}
	}
}
