package upload

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

const metadataText = "Metadata-Version: 2.1\nName: apple-pie\nVersion: 1.0\nSummary: sweet: and sour\nClassifier: A\nClassifier: B\n" +
	"Project-URL: Home, https://example.test/\nRequires-Dist: pear>=1\nLicense: first line\n        second line\n\nA description.\n\nWith a: colon.\n"

func zipOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := 0; i+1 < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, files[i+1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for i := 0; i+1 < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, files[i+1])
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive cannot be closed")
	}
	return buf.Bytes()
}

const wheelName, sdistName = "apple_pie-1.0-py3-none-any.whl", "apple_pie-1.0.tar.gz"

func TestReadMetadata(t *testing.T) {
	for name, archive := range map[string][]byte{
		wheelName:           zipOf(t, "apple_pie/METADATA", "no", "apple_pie-1.0.dist-info/METADATA", metadataText),
		sdistName:           tarOf(t, "apple_pie-1.0/src/PKG-INFO", "no", "apple_pie-1.0/PKG-INFO", metadataText),
		"apple_pie-1.0.zip": zipOf(t, "apple_pie-1.0/PKG-INFO", strings.ReplaceAll(metadataText, "\n", "\r\n")),
	} {
		m, err := ReadMetadata(name, bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := m.Check("apple.pie", "1.0"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m.Check("pear", "1.0") == nil || m.Check("apple-pie", "2.0") == nil {
			t.Errorf("%s is taken for another package", name)
		}
		if m.Get("summary") != "sweet: and sour" || m.Get("license") != "first line\nsecond line" || m.Get("description") != "A description.\n\nWith a: colon.\n" ||
			count(m.Fields, "classifiers") != 2 || m.Get("project_urls") != "Home, https://example.test/" {
			t.Errorf("%s: %+v", name, m.Fields)
		}
	}
}

func TestReadMetadataRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		body []byte
	}{
		"no archive":             {wheelName, []byte("hello")},
		"no metadata":            {wheelName, zipOf(t, "a/b", "c")},
		"metadata too deep":      {wheelName, zipOf(t, "x/apple_pie-1.0.dist-info/METADATA", metadataText)},
		"no name":                {wheelName, zipOf(t, "a-1.dist-info/METADATA", "Metadata-Version: 2.1\nVersion: 1.0\n")},
		"two names":              {wheelName, zipOf(t, "a-1.dist-info/METADATA", metadataText[:22]+"Name: other\n"+metadataText[22:])},
		"a line that is none":    {wheelName, zipOf(t, "a-1.dist-info/METADATA", "nonsense\n"+metadataText)},
		"a field's name":         {wheelName, zipOf(t, "a-1.dist-info/METADATA", "a\"b: c\n"+metadataText)},
		"not UTF-8":              {wheelName, zipOf(t, "a-1.dist-info/METADATA", metadataText+"\xff")},
		"metadata of 9 MB":       {wheelName, zipOf(t, "a-1.dist-info/METADATA", metadataText+strings.Repeat("x", 9<<20))},
		"sources without any":    {sdistName, tarOf(t, "apple_pie-1.0/setup.py", "")},
		"an egg":                 {"apple_pie-1.0-py3.egg", zipOf(t, "EGG-INFO/PKG-INFO", metadataText)},
		"a packing that is rare": {"apple_pie-1.0.tar.xz", []byte("x")},
	} {
		if _, err := ReadMetadata(c.name, bytes.NewReader(c.body), int64(len(c.body))); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The form that is sent is one that CheckForm takes, of the length that was said, with the file
// as it is.
func TestUploadForm(t *testing.T) {
	archive := zipOf(t, "apple_pie-1.0.dist-info/METADATA", metadataText)
	m, err := ReadMetadata(wheelName, bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	form, err := NewForm(wheelName, m, Sums{SHA256: []byte{1, 2}, MD5: []byte{3}}, bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(form.Body)
	if err != nil || int64(len(body)) != form.Length {
		t.Fatalf("%d bytes, said %d: %v", len(body), form.Length, err)
	}
	if project, err := CheckForm(form.ContentType, bytes.NewReader(body)); err != nil || project != "apple-pie" {
		t.Errorf("check: %q %v", project, err)
	}
	_, params, _ := mime.ParseMediaType(form.ContentType)
	parsed, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"filetype": {"bdist_wheel"}, "pyversion": {"py3"}, "classifiers": {"A", "B"}, "requires_dist": {"pear>=1"}, "sha256_digest": {"0102"}, "md5_digest": {"03"},
	} {
		if !slices.Equal(parsed.Value[name], want) {
			t.Errorf("%s = %q, want %q", name, parsed.Value[name], want)
		}
	}
	file, err := parsed.File["content"][0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(file); !bytes.Equal(got, archive) {
		t.Error("the file in the form is another one")
	}
	short, err := NewForm(wheelName, m, Sums{}, bytes.NewReader(archive[:10]), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(short.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short file: %v", err)
	}
}

// Whatever an archive holds, reading its metadata ends within its bounds and never panics.
func FuzzReadMetadata(f *testing.F) {
	f.Add(wheelName, zipOf(f, "apple_pie-1.0.dist-info/METADATA", metadataText))
	f.Add(sdistName, tarOf(f, "apple_pie-1.0/PKG-INFO", metadataText))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		m, err := ReadMetadata(name, bytes.NewReader(body), int64(len(body)))
		if err == nil && (m.Get("name") == "" && count(m.Fields, "name") != 1) {
			t.Error("metadata without a name")
		}
	})
}

// Whatever a form holds, a project that is found in it is a valid one.
func FuzzCheckForm(f *testing.F) {
	f.Add("--b\r\nContent-Disposition: form-data; name=\":action\"\r\n\r\nfile_upload\r\n--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\napple\r\n--b--\r\n")
	f.Fuzz(func(t *testing.T, body string) {
		if project, err := CheckForm("multipart/form-data; boundary=b", strings.NewReader(body)); err == nil && (project == "" || naming.Normalize(project) != project) {
			t.Errorf("project %q", project)
		}
	})
}
