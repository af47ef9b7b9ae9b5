package upstream

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// ReadBody reads a whole body of at most limit bytes, unpacked. A body that was cut or stalled is a
// *Failure, which will pass; one that lies about its encoding wraps registry.ErrMalformed, and one
// over the limit registry.ErrTooLarge.
func ReadBody(resp *http.Response, limit int64) ([]byte, error) {
	raw := &failureReader{r: resp.Body}
	var r io.Reader = raw
	size := resp.ContentLength
	switch enc := strings.ToLower(resp.Header.Get("Content-Encoding")); enc {
	case "", "identity":
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(raw)
		if err != nil {
			return nil, raw.or(fmt.Errorf("%w: invalid gzip body: %v", registry.ErrMalformed, err))
		}
		r, size = zr, size*6
	default:
		return nil, fmt.Errorf("%w: unrequested content encoding %q", registry.ErrMalformed, enc)
	}
	buf := make([]byte, 0, min(max(size, 16<<10), limit)+1)
	for {
		if int64(len(buf)) > limit {
			return nil, fmt.Errorf("%w: more than %d bytes", registry.ErrTooLarge, limit)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), int(limit)+1)])
		buf = buf[:len(buf)+n]
		if err == io.EOF { // a wrapped one is a cut body
			return fit(buf), nil
		}
		if err != nil {
			return nil, raw.or(fmt.Errorf("%w: %v", registry.ErrMalformed, err))
		}
	}
}

// fit gives a body without the room that was held ready for more, where that is much: a body may be
// kept for long.
func fit(buf []byte) []byte {
	if cap(buf)-len(buf) <= len(buf)/16 {
		return buf
	}
	return bytes.Clone(buf)
}

// failureReader remembers a failure of the connection, to tell a cut body from a lying one.
type failureReader struct {
	r   io.Reader
	err error
}

func (f *failureReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func (f *failureReader) or(err error) error {
	if f.err != nil {
		return f.err
	}
	return err
}
