package mirror

import (
	"crypto/md5" //nolint:gosec // a field of the upload form, beside SHA-256
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/gate"
)

// Spooled is a verified file on the local disk. It has no name any more, so that it ends with the
// process that holds it.
type Spooled struct {
	*os.File
	Size   int64
	SHA256 [sha256.Size]byte
	MD5    [md5.Size]byte
}

// Reader reads the file from its beginning.
func (s *Spooled) Reader() io.Reader { return io.NewSectionReader(s.File, 0, s.Size) }

// spool writes a copy to the disk while it is verified. Nothing is given back that was not verified
// to its end: a file without a digest, of another digest or over the bound is not.
func (w *Worker) spool(c *gate.Copy) (*Spooled, error) {
	if len(c.Version.Artifacts) == 0 || len(c.Version.Artifacts[0].Digests) == 0 {
		return nil, unfit("the listing has no digest for the file, so it cannot be verified")
	}
	if c.Size > w.MaxBytes {
		return nil, unfit("the file has %d bytes; at most %d are mirrored", c.Size, w.MaxBytes)
	}
	f, err := durable.Scratch(w.SpoolDir)
	if err != nil {
		return nil, err
	}
	s := &Spooled{File: f}
	if err := s.fill(c.Body, w.MaxBytes); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *Spooled) fill(from io.Reader, limit int64) (err error) {
	sha, sum := sha256.New(), md5.New() //nolint:gosec // see above
	s.Size, err = io.Copy(io.MultiWriter(durable.DiskWriter{To: s.File}, sha, sum), io.LimitReader(from, limit+1))
	if err != nil {
		return err
	}
	if s.Size > limit {
		return unfit("the file has more than %d bytes, the most that is mirrored", limit)
	}
	sha.Sum(s.SHA256[:0])
	sum.Sum(s.MD5[:0])
	return nil
}
