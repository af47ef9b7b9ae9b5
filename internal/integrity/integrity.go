// Package integrity knows digests: how strong they are, and whether a file is the one that they
// name.
package integrity

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what old packages advertise; floors decide whether that is enough
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// ErrMismatch says that a file is not the one that its listing names.
var ErrMismatch = errors.New("the file's digest differs from the one in the listing")

// Floor is the weakest integrity that a version may be served with.
type Floor int

// The floors, weakest first. None serves versions without any digest.
const (
	None Floor = iota
	SHA1
	SHA256
	SHA384
	SHA512
)

// ParseFloor reads a floor by its algorithm's name; "none" is None.
func ParseFloor(name string) (Floor, error) {
	if f := Strength(name); f != None || name == "none" {
		return f, nil
	}
	return 0, fmt.Errorf("integrity floor %q: use sha512, sha384, sha256, sha1 or none", name)
}

// String is the algorithm's name.
func (f Floor) String() string { return [...]string{"none", "sha1", "sha256", "sha384", "sha512"}[f] }

// Strength is the floor that an algorithm meets; None for an unknown one.
func Strength(algorithm string) Floor {
	for f := SHA1; f <= SHA512; f++ {
		if f.String() == algorithm {
			return f
		}
	}
	return None
}

// Meets reports whether every file of a version has a digest of at least the floor.
func (f Floor) Meets(v registry.Version) bool {
	for _, a := range v.Artifacts {
		best := None
		for _, d := range a.Digests {
			best = max(best, Strength(d.Algorithm))
		}
		if best < f {
			return false
		}
	}
	return true
}

// NewHash returns the hash of an algorithm, nil for an unknown one.
func NewHash(algorithm string) hash.Hash {
	switch algorithm {
	case "sha512":
		return sha512.New()
	case "sha384":
		return sha512.New384()
	case "sha256":
		return sha256.New()
	case "sha1":
		return sha1.New() //nolint:gosec // see above
	}
	return nil
}

// Strongest is the first digest of at least a strength that can be checked; digests stand strongest
// first.
func Strongest(digests []registry.Digest, least Floor) (registry.Digest, bool) {
	for _, d := range digests {
		if h := NewHash(d.Algorithm); h != nil && Strength(d.Algorithm) >= least && h.Size() == len(d.Sum) {
			return d, true
		}
	}
	return registry.Digest{}, false
}

// FileName is the name under which a file is kept: its strongest digest. Only digests that nobody
// can forge are names.
func FileName(digests []registry.Digest) (name string, d registry.Digest, ok bool) {
	d, ok = Strongest(digests, SHA256)
	return d.Algorithm + "-" + hex.EncodeToString(d.Sum), d, ok
}

// OfFileName is what a file must hash to that is kept under a name; false for a name that FileName
// does not give.
func OfFileName(name string) (h hash.Hash, want []byte, ok bool) {
	algorithm, digits, _ := strings.Cut(name, "-")
	h = NewHash(algorithm)
	want, err := hex.DecodeString(digits)
	if h == nil || err != nil || Strength(algorithm) < SHA256 || h.Size() != len(want) || strings.ToLower(digits) != digits {
		return nil, nil, false
	}
	return h, want, true
}

// Match judges a whole file by its hash: nil or ErrMismatch.
func Match(h hash.Hash, want []byte) error {
	if bytes.Equal(h.Sum(nil), want) {
		return nil
	}
	return ErrMismatch
}

// piece is how much of a body is held back until the whole is known to be right.
const piece = 32 << 10

// Verify checks a body against the strongest digest that can be checked. The last piece is held
// back until the whole is known to be right, so that no reader ever holds a complete bad file: it
// gets ErrMismatch instead. Without such a digest the body passes as it is.
func Verify(body io.ReadCloser, digests []registry.Digest) io.ReadCloser {
	d, ok := Strongest(digests, SHA1)
	if !ok {
		return body
	}
	return &verifier{ReadCloser: body, hash: NewHash(d.Algorithm), want: d.Sum}
}

type verifier struct {
	io.ReadCloser
	hash  hash.Hash
	want  []byte
	ready []byte    // may be handed out
	held  []byte    // the newest piece, not yet
	bufs  [2][]byte // ready and held lie in these, by turns
	turn  int
	err   error
}

// Read hands out all pieces but the newest; the newest follows when the digest is right.
func (v *verifier) Read(p []byte) (int, error) {
	for len(v.ready) == 0 {
		if v.err != nil {
			return 0, v.err
		}
		v.advance()
	}
	n := copy(p, v.ready)
	v.ready = v.ready[n:]
	return n, nil
}

func (v *verifier) advance() {
	if v.bufs[v.turn] == nil {
		v.bufs[v.turn] = make([]byte, piece)
	}
	n, err := fill(v.ReadCloser, v.bufs[v.turn])
	v.hash.Write(v.bufs[v.turn][:n])
	v.ready, v.held = v.held, v.bufs[v.turn][:n]
	v.turn = 1 - v.turn
	if err == nil {
		return
	}
	v.err = err
	if !errors.Is(err, io.EOF) {
		return
	}
	if err := Match(v.hash, v.want); err != nil {
		v.err, v.ready = err, nil // the piece before an empty one is the last one
		return
	}
	v.ready = append(slices.Clip(v.ready), v.held...)
}

// fill reads until the buffer is full or the body ends, which is io.EOF alone: an error of the body
// is never mistaken for its end.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}
