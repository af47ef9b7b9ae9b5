package review

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
)

// CodeBundle says that a bundle is not what an export writes.
const CodeBundle = "journal-bundle-invalid"

// A bundle is a tar archive of the manifest and then every file of a journal, in the manifest's
// order (S153). It holds no path of the machine but the approved root, which stands in the plan.
const (
	manifestName = "manifest.json"
	bundleKind   = "file-upload-journal-bundle"
	maxBundle    = 64 << 20 // bytes of all files together
)

type manifest struct {
	SchemaVersion string        `json:"schema_version"`
	Kind          string        `json:"kind"`
	JournalDigest string        `json:"journal_digest"`
	Files         []bundledFile `json:"files"`
}

type bundledFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Export records in a sound journal that it goes on elsewhere, and writes it as a bundle. From then
// on the folder refuses work until the export is withdrawn. An export that was interrupted, or
// whose bundle could not be written, is repeated.
func Export(dir string, w io.Writer) error {
	j, err := journal.Open(dir, record.NewLayout(), journal.Options{})
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // everything is synced
	files, err := j.Export()
	if err != nil {
		return err
	}
	return bundle(w, files, j.Record())
}

// Withdraw records the operator's statement that no other copy of the journal is used: it goes on
// in this folder.
func Withdraw(dir string) error {
	j, err := journal.Open(dir, record.NewLayout(), journal.Options{})
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // everything is synced
	if !j.Record().Displaced() {
		return refuse(CodeNothing, "", "the journal is not exported, and what is kept beside its folder is there: there is nothing to withdraw")
	}
	return j.Withdraw()
}

// bundle writes the files of a journal.
func bundle(w io.Writer, files journal.Files, r *journal.Record) error {
	m := manifest{SchemaVersion: "1.0", Kind: bundleKind, JournalDigest: r.Digest(), Files: []bundledFile{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m.Files = append(m.Files, bundledFile{name, int64(len(files[name])), strictjson.DigestBytes(files[name])})
	}
	head, err := strictjson.Canonical(m)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	err = add(t, manifestName, head)
	for _, f := range m.Files {
		err = errors.Join(err, add(t, f.Name, files[f.Name]))
	}
	return errors.Join(err, t.Close())
}

func add(t *tar.Writer, name string, data []byte) error {
	err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = t.Write(data)
	}
	return err
}

// Import makes a journal of a bundle in a new or empty private folder. Every digest, and the
// journal as a whole, is verified before the first file is written.
func Import(r io.Reader, dir string) error {
	m, files, err := unpack(r)
	if err != nil {
		return err
	}
	got, faults, err := files.Inspect(record.NewLayout())
	switch {
	case err != nil:
		return err
	case len(faults) > 0:
		return faults[0]
	case got.Digest() != m.JournalDigest:
		return refuse(CodeBundle, "journal_digest", "is not that of the journal in the bundle")
	}
	return files.Restore(dir, record.NewLayout(), journal.Options{})
}

// unpack reads a whole bundle and compares every file with the manifest.
func unpack(r io.Reader) (*manifest, journal.Files, error) {
	bad := func(what string) (*manifest, journal.Files, error) {
		return nil, nil, refuse(CodeBundle, "", "is not a journal bundle: %s", what)
	}
	counted := &counter{Reader: io.LimitReader(r, maxBundle)}
	t := tar.NewReader(counted)
	name, data, err := member(t)
	m := &manifest{}
	if err != nil || name != manifestName || strictjson.Decode(data, m) != nil || m.SchemaVersion != "1.0" || m.Kind != bundleKind {
		return bad("unreadable manifest")
	}
	if len(m.Files) > record.NewLayout().MaxFiles() {
		return bad("too many files")
	}
	files, size := journal.Files{}, inArchive(int64(len(data)))+archiveEnd
	for _, f := range m.Files {
		name, data, err := member(t)
		if err != nil || name != f.Name || int64(len(data)) != f.Bytes || strictjson.DigestBytes(data) != f.SHA256 || files[name] != nil {
			return bad(fmt.Sprintf("the file %.80q does not match the manifest", f.Name))
		}
		files[name] = data
		size += inArchive(f.Bytes)
	}
	switch _, err := t.Next(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return bad("it is cut off")
	case !errors.Is(err, io.EOF):
		return bad("trailing data after the files")
	}
	if _, err := io.Copy(io.Discard, counted); err != nil {
		return bad("unreadable end")
	}
	switch {
	case counted.n < size:
		return bad("it is cut off")
	case counted.n > size:
		return bad("trailing data after its end, such as a second bundle")
	}
	return m, files, nil
}

// An export is an archive of blocks: each file has a head of one block and is filled up to whole
// ones, and two blocks are the end. A reader of archives stops there, and takes an end of the data
// for it.
const (
	archiveBlock = 512
	archiveEnd   = 2 * archiveBlock
)

func inArchive(size int64) int64 {
	return archiveBlock + (size+archiveBlock-1)/archiveBlock*archiveBlock
}

// counter counts what is read through it.
type counter struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// member reads the next file of the archive, at most as large as a record.
func member(t *tar.Reader) (string, []byte, error) {
	h, err := t.Next()
	if err != nil {
		return "", nil, err
	}
	if h.Typeflag != tar.TypeReg || h.Size > strictjson.MaxBytes {
		return "", nil, errors.New("not a regular file of a record's size")
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, t)
	return h.Name, b.Bytes(), err
}
