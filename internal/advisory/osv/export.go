package osv

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of an export. The largest real ones have some hundred thousand records and less than a
// gigabyte.
const (
	maxRecords = 5_000_000
	maxUnzip   = 32 << 30 // bytes of all records together
)

// ErrTooLarge says that an export has more records or bytes than any sound one.
var ErrTooLarge = errors.New("the export has too many records or bytes")

// Export reads the records of a zip or of a folder, one after the other. A record that cannot be
// read comes as bytes that are no record, so that it is counted as broken; an error ends the
// export. The bytes are good until the next ones come.
func Export(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		st, err := os.Stat(path)
		if err != nil {
			yield(nil, err)
			return
		}
		b := &budget{records: maxRecords, bytes: maxUnzip}
		if st.IsDir() {
			err = b.folder(path, yield)
		} else {
			err = b.zip(path, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("stopped")

// budget is what may still be read.
type budget struct {
	records, bytes int64
	buf            bytes.Buffer // the record that was read last
}

func (b *budget) folder(path string, yield func([]byte, error) bool) error {
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isRecord(name) || !d.Type().IsRegular() {
			return err
		}
		return b.one(func() (io.ReadCloser, error) { return os.Open(name) }, yield)
	})
}

func (b *budget) zip(path string, yield func([]byte, error) bool) (err error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("not a usable zip: %v", err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	for _, f := range z.File {
		if !isRecord(f.Name) {
			continue
		}
		if err := b.one(f.Open, yield); err != nil {
			return err
		}
	}
	return nil
}

func isRecord(name string) bool { return strings.HasSuffix(name, ".json") }

func (b *budget) one(open func() (io.ReadCloser, error), yield func([]byte, error) bool) error {
	data := b.read(open)
	b.records--
	b.bytes -= int64(len(data))
	if b.records < 0 || b.bytes < 0 {
		return ErrTooLarge
	}
	if !yield(data, nil) {
		return errStopped
	}
	return nil
}

// read is the content of a record, or nothing when it cannot be read or is too large.
func (b *budget) read(open func() (io.ReadCloser, error)) []byte {
	r, err := open()
	if err != nil {
		return nil
	}
	defer r.Close()
	b.buf.Reset()
	if n, err := b.buf.ReadFrom(io.LimitReader(r, maxRecord+1)); err != nil || n > maxRecord {
		return nil
	}
	return b.buf.Bytes()
}

// Fingerprint reports whether a local export has changed: by the number, the size and the newest
// time of its files.
func Fingerprint(path string) (string, error) {
	var files, size, newest int64
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name != path && !isRecord(name) {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		files, size, newest = files+1, size+st.Size(), max(newest, st.ModTime().UnixNano())
		return nil
	})
	return fmt.Sprintf("files=%d size=%d newest=%d", files, size, newest), err
}
