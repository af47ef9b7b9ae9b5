package fakepypi

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Option changes what Wheel and Sdist make.
type Option func(*File, *build)

type build struct {
	requires []string
	padding  int
	tag      string
}

// Requires makes the distribution depend on others ("other>=1.0").
func Requires(requirements ...string) Option {
	return func(_ *File, b *build) { b.requires = append(b.requires, requirements...) }
}

// RequiresPython limits the distribution to versions of Python.
func RequiresPython(specifier string) Option {
	return func(f *File, _ *build) { f.RequiresPython = specifier }
}

// UploadedAt sets the time of the upload; the default is [Old].
func UploadedAt(t time.Time) Option { return func(f *File, _ *build) { f.Uploaded = t } }

// Yanked withdraws the file.
func Yanked(reason string) Option {
	return func(f *File, _ *build) { f.Yanked, f.YankReason = true, reason }
}

// WithoutCompanion publishes a wheel whose metadata cannot be read apart.
func WithoutCompanion() Option { return func(f *File, _ *build) { f.Metadata = nil } }

// Padding makes the distribution about that many bytes larger.
func Padding(bytes int) Option { return func(_ *File, b *build) { b.padding = bytes } }

// Tag sets a wheel's tag; the default is "py3-none-any".
func Tag(tag string) Option { return func(_ *File, b *build) { b.tag = tag } }

// Wheel makes a wheel (PEP 427) with one module, which holds its version, and with its companion
// (PEP 658). The same arguments give the same bytes.
func Wheel(name, version string, options ...Option) File {
	f, b := start(version, options)
	module := strings.ReplaceAll(name, "-", "_")
	info := module + "-" + version + ".dist-info/"
	f.Name = module + "-" + version + "-" + b.tag + ".whl"
	metadata := b.metadata(name, version, f.RequiresPython)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	var record strings.Builder
	add := func(path string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Store, Modified: Old()})
		must(err)
		_, err = w.Write(content)
		must(err)
		sum := sha256.Sum256(content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
	}
	add(module+"/__init__.py", fmt.Appendf(nil, "__version__ = %q\n", version))
	if b.padding > 0 {
		add(module+"/padding.txt", bytes.Repeat([]byte("padding\n"), b.padding/8))
	}
	add(info+"METADATA", metadata)
	add(info+"WHEEL", fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: fakepypi\nRoot-Is-Purelib: true\nTag: %s\n", b.tag))
	record.WriteString(info + "RECORD,,\n")
	w, err := z.CreateHeader(&zip.FileHeader{Name: info + "RECORD", Method: zip.Store, Modified: Old()})
	must(err)
	_, err = w.Write([]byte(record.String()))
	must(err)
	must(z.Close())
	f.Content, f.Metadata = archive.Bytes(), metadata
	return finish(f, b, options)
}

// Sdist makes an archive of sources with a setup.py, which setuptools builds.
func Sdist(name, version string, options ...Option) File {
	f, b := start(version, options)
	module := strings.ReplaceAll(name, "-", "_")
	root := module + "-" + version
	f.Name = root + ".tar.gz"
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	t := tar.NewWriter(z)
	add := func(path string, content []byte) {
		must(t.WriteHeader(&tar.Header{Name: root + "/" + path, Mode: 0o644, Size: int64(len(content)), ModTime: Old()}))
		_, err := t.Write(content)
		must(err)
	}
	add("PKG-INFO", b.metadata(name, version, f.RequiresPython))
	add("setup.py", fmt.Appendf(nil, "from setuptools import setup\nsetup(name=%q, version=%q, packages=[%q])\n", name, version, module))
	add(module+"/__init__.py", fmt.Appendf(nil, "__version__ = %q\n", version))
	must(t.Close())
	must(z.Close())
	f.Content = archive.Bytes()
	return finish(f, b, options)
}

func start(version string, options []Option) (File, *build) {
	f, b := File{Version: version, Uploaded: Old()}, &build{tag: "py3-none-any"}
	for _, o := range options {
		o(&f, b)
	}
	return f, b
}

// finish applies the options again: some change what was made since.
func finish(f File, b *build, options []Option) File {
	for _, o := range options {
		o(&f, b)
	}
	return f
}

func (b *build) metadata(name, version, requiresPython string) []byte {
	var m strings.Builder
	fmt.Fprintf(&m, "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: made by a test\n", name, version)
	if requiresPython != "" {
		fmt.Fprintf(&m, "Requires-Python: %s\n", requiresPython)
	}
	for _, r := range b.requires {
		fmt.Fprintf(&m, "Requires-Dist: %s\n", r)
	}
	return []byte(m.String())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
