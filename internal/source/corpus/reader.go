package corpus

import (
	"encoding/hex"
	"hash"
	"io"
	"os"
)

// reader hands out a known file and holds back its last bytes until the whole content has proved to be the known one, so that a
// server never receives a complete file that nobody approved.
type reader struct {
	handle *os.File
	known  File
	left   int64
	sum    hash.Hash
	err    error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := io.ReadFull(r.handle, p)
	r.sum.Write(p[:n])
	r.left -= int64(n)
	if err != nil || r.left == 0 && !r.proved() {
		r.err = drift(r.known.Path)
		return 0, r.err
	}
	return n, nil
}

// proved reports, at the end of the content, that it is the known one and that nothing was added or touched meanwhile.
func (r *reader) proved() bool {
	return hex.EncodeToString(r.sum.Sum(nil)) == r.known.SHA256 && unchanged(r.handle, r.known) == nil
}

func (r *reader) Close() error { return r.handle.Close() }
