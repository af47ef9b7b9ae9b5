package review

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/source/strict"
	"github.com/ecluse-gate/ecluse/journal"
)

// CodeBundle says that a bundle is not what an export writes.
const CodeBundle = "journal-bundle-invalid"

// A bundle is a tar archive of the manifest and then every file of a journal, in the manifest's order (S153). It holds no path of the machine but the
// approved root, which stands in the plan.
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

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Export writes a sound journal as a bundle. It changes nothing; from then on the journal must be used in one place only.
func Export(dir string, w io.Writer) error {
	d, err := durable.Open(dir, durable.Options{})
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // only read
	if err := d.Lock(true); err != nil {
		return err
	}
	layout := record.NewLayout()
	r, err := journal.Read(dir, layout)
	if err != nil {
		return err
	}
	names, _, err := d.List(layout.MaxFiles())
	if err != nil {
		return err
	}
	m := manifest{SchemaVersion: "1.0", Kind: bundleKind, JournalDigest: r.Digest(), Files: []bundledFile{}}
	contents := make([][]byte, len(names))
	for i, name := range lastProof(names) {
		if contents[i], err = d.Read(name, durable.MaxRecord); err != nil {
			return err
		}
		m.Files = append(m.Files, bundledFile{name, int64(len(contents[i])), digestOf(contents[i])})
	}
	head, err := journal.Canonical(m)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := add(t, manifestName, head); err != nil {
		return err
	}
	for i, f := range m.Files {
		if err := add(t, f.Name, contents[i]); err != nil {
			return err
		}
	}
	return t.Close()
}

// lastProof orders names so that the entries without which a journal is never continued come last: an import that is cut off leaves nothing that looks like
// a journal with fewer attempts.
func lastProof(names []string) []string {
	rank := map[string]int{record.RunName: 1, record.SourceAckName: 2}
	ordered := slices.Clone(names)
	slices.SortStableFunc(ordered, func(a, b string) int { return rank[a] - rank[b] })
	return ordered
}

func add(t *tar.Writer, name string, data []byte) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
		return fmt.Errorf("write bundle: %v", err)
	}
	if _, err := t.Write(data); err != nil {
		return fmt.Errorf("write bundle: %v", err)
	}
	return nil
}

// Import makes a journal of a bundle in a new or empty private folder, every digest verified before the first file is written and the whole journal
// afterwards.
func Import(r io.Reader, dir string) error {
	m, contents, err := unpack(r)
	if err != nil {
		return err
	}
	if err := write(dir, m, contents); err != nil {
		return err
	}
	got, err := journal.Read(dir, record.NewLayout())
	if err != nil {
		return err
	}
	if got.Digest() != m.JournalDigest {
		return refuse(CodeBundle, "journal_digest", "is not that of the journal in the bundle")
	}
	return nil
}

func write(dir string, m *manifest, contents [][]byte) error {
	d, err := durable.Make(dir, durable.Options{})
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // everything is synced
	if err := d.Lock(false); err != nil {
		return err
	}
	if names, _, err := d.List(1); err != nil || len(names) > 0 {
		return refuse("file-upload-"+journal.CodeExists, "", "the folder of an imported journal must be empty")
	}
	for i, f := range m.Files {
		if err := d.Publish(f.Name, contents[i]); err != nil {
			return err
		}
	}
	return nil
}

// unpack reads a whole bundle and compares every file with the manifest.
func unpack(r io.Reader) (*manifest, [][]byte, error) {
	bad := func(what string) (*manifest, [][]byte, error) {
		return nil, nil, refuse(CodeBundle, "", "is no bundle of a journal: %s", what)
	}
	t := tar.NewReader(io.LimitReader(r, maxBundle))
	name, data, err := member(t)
	var m manifest
	if err != nil || name != manifestName || strict.Decode(data, &m) != nil || m.SchemaVersion != "1.0" || m.Kind != bundleKind || !plan.DigestForm().MatchString(m.JournalDigest) {
		return bad("its manifest cannot be read")
	}
	names := make([]string, 0, len(m.Files))
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	if len(names) > record.NewLayout().MaxFiles() || !slices.Equal(names, lastProof(names)) {
		return bad("its files are too many or out of order")
	}
	contents := make([][]byte, len(m.Files))
	for i, f := range m.Files {
		name, data, err := member(t)
		if err != nil || name != f.Name || int64(len(data)) != f.Bytes || digestOf(data) != f.SHA256 {
			return bad("the file " + fmt.Sprintf("%.80q", f.Name) + " is not the one of its manifest")
		}
		contents[i] = data
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return bad("something follows its files")
	}
	return &m, contents, nil
}

// member reads the next file of the archive, at most as large as a record.
func member(t *tar.Reader) (string, []byte, error) {
	h, err := t.Next()
	if err != nil {
		return "", nil, err
	}
	if h.Typeflag != tar.TypeReg || h.Size > durable.MaxRecord {
		return "", nil, errors.New("no regular file of the size of a record")
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, t)
	return h.Name, b.Bytes(), err
}
