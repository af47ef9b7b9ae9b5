package upload

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// Bounds of a foreign archive.
const (
	maxMetadata  = 8 << 20   // METADATA or PKG-INFO, unpacked
	maxDirectory = 16 << 20  // what is read of a zip to find its parts
	maxUnpacked  = 512 << 20 // what is unpacked of a tar on the way to PKG-INFO
	maxFields    = 10_000
)

// ErrMetadata is wrapped by the errors of ReadMetadata: the archive has no metadata that could be
// used.
var ErrMetadata = errors.New("no usable package metadata")

// Field is one line of a package's metadata, named as the upload form names it.
type Field struct{ Name, Value string }

// Metadata is what a package says of itself (core metadata specification), in the order of the
// file.
type Metadata struct {
	Fields []Field
	kind   string
	tag    string // of a wheel: what it runs on
}

// Get is the first value of a field, or "".
func (m *Metadata) Get(name string) string {
	for _, f := range m.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Check compares the name and version inside the file with those that it is listed under.
func (m *Metadata) Check(name, version string) error {
	if naming.Normalize(m.Get("name")) != naming.Normalize(name) || naming.EqualKey(m.Get("version")) != naming.EqualKey(version) {
		return fmt.Errorf("%w: its metadata names %.64q %.64q, its listing %s %s", ErrMetadata, m.Get("name"), m.Get("version"), name, version)
	}
	return nil
}

// ReadMetadata reads the metadata in a wheel (METADATA) or a source distribution (PKG-INFO), within
// bounds.
func ReadMetadata(file string, r io.ReaderAt, size int64) (*Metadata, error) {
	var text []byte
	var err error
	m := &Metadata{kind: naming.KindOf(file)}
	switch {
	case m.kind == naming.KindWheel:
		tags := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
		m.tag = tags[max(len(tags)-3, 0)]
		text, err = fromZip(r, size, func(name string) bool {
			dir, leaf := path.Split(name)
			return leaf == "METADATA" && strings.HasSuffix(dir, ".dist-info/") && strings.Count(dir, "/") == 1
		})
	case m.kind == naming.KindSdist && strings.HasSuffix(file, ".zip"):
		text, err = fromZip(r, size, isPkgInfo)
	case m.kind == naming.KindSdist:
		text, err = fromTar(file, io.NewSectionReader(r, 0, size))
	default:
		return nil, fmt.Errorf("%w: %.64q is neither a wheel nor a source distribution", ErrMetadata, file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w in %.64q: %v", ErrMetadata, file, err)
	}
	if m.Fields, err = parseMetadata(text); err != nil {
		return nil, fmt.Errorf("%w in %.64q: %v", ErrMetadata, file, err)
	}
	return m, nil
}

func isPkgInfo(name string) bool {
	dir, leaf := path.Split(strings.TrimPrefix(name, "./"))
	return leaf == "PKG-INFO" && strings.Count(dir, "/") == 1
}

var (
	errAbsent = errors.New("the archive contains no metadata")
	errLarge  = errors.New("the metadata is too large")
)

// fromZip finds one part of a zip. What is read of the archive is bounded, since its directory may
// be as large as the whole file.
func fromZip(r io.ReaderAt, size int64, want func(name string) bool) ([]byte, error) {
	bounded := &boundedReaderAt{r: r, left: maxDirectory}
	z, err := zip.NewReader(bounded, size)
	if err != nil {
		return nil, err
	}
	for _, f := range z.File {
		if !want(f.Name) {
			continue
		}
		bounded.left = maxMetadata + maxDirectory
		part, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer part.Close()
		return readBounded(part)
	}
	return nil, errAbsent
}

type boundedReaderAt struct {
	r    io.ReaderAt
	left int64
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errLarge
	}
	return b.r.ReadAt(p, off)
}

func fromTar(file string, r io.Reader) ([]byte, error) {
	switch {
	case strings.HasSuffix(file, ".tar.gz"), strings.HasSuffix(file, ".tgz"):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	case strings.HasSuffix(file, ".tar.bz2"), strings.HasSuffix(file, ".tbz"):
		r = bzip2.NewReader(r)
	case strings.HasSuffix(file, ".tar"):
	default:
		return nil, errors.New("unsupported compression method")
	}
	t := tar.NewReader(io.LimitReader(r, maxUnpacked))
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil, errAbsent
		} else if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && isPkgInfo(h.Name) {
			return readBounded(t)
		}
	}
}

func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if len(b) > maxMetadata {
		return nil, errLarge
	}
	return b, err
}

// parseMetadata reads header lines, their continuations, and the description that may follow.
func parseMetadata(text []byte) ([]Field, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	head, body, _ := strings.Cut(string(text), "\n\n")
	var fields []Field
	for line := range strings.SplitSeq(strings.TrimSuffix(head, "\n"), "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if len(fields) == 0 {
				return nil, errors.New("it begins with a continuation line")
			}
			last := &fields[len(fields)-1]
			last.Value += "\n" + strings.TrimPrefix(strings.TrimLeft(line, " \t"), "|")
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || !headerName(key) {
			return nil, fmt.Errorf("line %.64q is not a field", line)
		}
		if len(fields) == maxFields {
			return nil, errLarge
		}
		fields = append(fields, Field{formName(key), strings.TrimSpace(value)})
	}
	if strings.TrimSpace(body) != "" {
		fields = append(fields, Field{"description", body})
	}
	for _, need := range []string{"metadata_version", "name", "version"} {
		if n := count(fields, need); n != 1 {
			return nil, fmt.Errorf("field %s appears %d times", need, n)
		}
	}
	return fields, nil
}

func count(fields []Field, name string) (n int) {
	for _, f := range fields {
		if f.Name == name {
			n++
		}
	}
	return n
}

func headerName(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && s[i] != '-' {
			return false
		}
	}
	return s != "" && len(s) < 64
}

// formName is what the upload form calls a metadata field: lists have plural names, where history
// gave them one.
func formName(key string) string {
	switch name := strings.ReplaceAll(strings.ToLower(key), "-", "_"); name {
	case "classifier":
		return "classifiers"
	case "project_url":
		return "project_urls"
	default:
		return name
	}
}
