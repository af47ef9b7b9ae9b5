// Package payload reads the bodies of answers whole: bounded, unpacked, and with no more memory
// than asked for.
package payload

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Room is asked before a body takes n bytes of memory more, and told of those that it no longer
// takes with an n below 0. An error ends the reading, and is what it ends with.
type Room func(n int64) error

// Read is ReadWithin without anybody to ask.
func Read(resp *http.Response, limit int64) ([]byte, error) {
	return ReadWithin(resp, limit, func(int64) error { return nil })
}

// ReadWithin reads a whole body of at most limit bytes, unpacked. A body that was cut or
// stalled is a *Failure, which will pass; one that lies about its encoding wraps
// registry.ErrMalformed, and one over the limit registry.ErrTooLarge.
//
// A packed body is read first and unpacked then: its end says how long it is, so that the text
// takes its own length and nothing is copied on the way.
func ReadWithin(resp *http.Response, limit int64, room Room) ([]byte, error) {
	enc := strings.ToLower(resp.Header.Get("Content-Encoding"))
	switch enc {
	case "", "identity", "gzip", "x-gzip":
	default:
		return nil, fmt.Errorf("%w: unrequested content encoding %q", registry.ErrMalformed, enc)
	}
	p, err := collect(resp.Body, resp.ContentLength, limit, room)
	if err != nil {
		return nil, err
	}
	if enc == "" || enc == "identity" {
		return p.join(room)
	}
	return p.unpack(limit, room)
}

// pieces are a body as it came.
type pieces struct {
	list [][]byte
	size int64
}

// Sizes of a piece of a body without a length.
const (
	firstPiece = 16 << 10
	mostPiece  = 1 << 20
)

// collect reads a body of at most limit bytes; a length below 0 is not known.
func collect(r io.Reader, length, limit int64, room Room) (*pieces, error) {
	p := &pieces{}
	if length > limit {
		return nil, tooLarge(limit)
	}
	next := int64(firstPiece)
	if length >= 0 {
		next = length + 1 // room to see the end
	}
	for {
		next = min(next, limit+1-p.size)
		if err := room(next); err != nil {
			return nil, err
		}
		piece := make([]byte, next)
		n, ended, err := fill(r, piece)
		p.list, p.size = append(p.list, piece[:n]), p.size+int64(n)
		switch {
		case p.size > limit:
			return nil, tooLarge(limit)
		case err != nil:
			return nil, err
		case ended:
			return p, nil
		}
		next = min(2*next, mostPiece)
	}
}

// fill reads until the piece is full or the body ends.
func fill(r io.Reader, piece []byte) (n int, ended bool, err error) {
	for n < len(piece) {
		m, err := r.Read(piece[n:])
		n += m
		if err == io.EOF { // a wrapped one is a cut body
			return n, true, nil
		} else if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: more than %d bytes", registry.ErrTooLarge, limit)
}

// join is the body in one piece.
func (p *pieces) join(room Room) ([]byte, error) {
	if len(p.list) == 1 {
		return fit(p.list[0]), nil
	}
	if err := room(p.size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, p.size)
	for i, piece := range p.list {
		body = append(body, piece...)
		p.list[i] = nil
	}
	return body, room(-p.size)
}

// gzipRatio is more than DEFLATE can pack of one byte.
const gzipRatio = 1032

// announced is how long the text of a gzip body says that it is, in its last four bytes; it may be
// less than the truth.
func (p *pieces) announced(limit int64) int64 {
	var end []byte
	for i := len(p.list) - 1; i >= 0 && len(end) < 4; i-- {
		piece := p.list[i]
		end = append(bytes.Clone(piece[max(0, len(piece)-4+len(end)):]), end...)
	}
	if len(end) < 4 {
		return 0
	}
	return min(int64(binary.LittleEndian.Uint32(end)), p.size*gzipRatio, limit)
}

func (p *pieces) unpack(limit int64, room Room) ([]byte, error) {
	readers := make([]io.Reader, len(p.list))
	for i, piece := range p.list {
		readers[i] = bytes.NewReader(piece)
	}
	zr, err := gzip.NewReader(io.MultiReader(readers...))
	if err != nil {
		return nil, fmt.Errorf("%w: invalid gzip body: %v", registry.ErrMalformed, err)
	}
	var r io.Reader = zr
	size := p.announced(limit) + 1
	if err := room(size); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			more := min(size+size/4+mostPiece, limit+1) // there is more than was announced
			if err := room(more - size); err != nil {
				return nil, err
			}
			buf, size = append(make([]byte, 0, more), buf...), more
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), int(limit)+1)])
		if buf = buf[:len(buf)+n]; int64(len(buf)) > limit {
			return nil, tooLarge(limit)
		}
		if err == io.EOF { // a wrapped one is a cut body
			return fit(buf), room(-p.size)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %v", registry.ErrMalformed, err)
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
