package packument

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

// Gzip is a body as a registry packs it, as a whole.
func Gzip(body []byte) []byte {
	var buf bytes.Buffer
	// the level is a constant that the library knows
	w, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	_, _ = w.Write(body) // a bytes.Buffer does not fail
	_ = w.Close()
	return buf.Bytes()
}
