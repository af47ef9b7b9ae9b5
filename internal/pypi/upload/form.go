// Package upload is how a file gets into a Python index: the form of the legacy upload API, made
// and checked, and the metadata in a file that the form repeats. It sends nothing.
package upload

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// Sums are a file's digests, raw.
type Sums struct{ SHA256, MD5 []byte }

// Form is the form by which Python indexes take a file (the legacy upload API), as twine sends
// it.
type Form struct {
	ContentType string
	Body        io.Reader
	Length      int64
}

// maxForm bounds a form without its file.
const maxForm = 16 << 20

// NewForm makes the form. The file is read once, while the form is sent; it is never whole in
// memory.
func NewForm(file string, m *Metadata, sums Sums, content io.Reader, size int64) (*Form, error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	fileType, python := "sdist", "source"
	if m.kind == naming.KindWheel {
		fileType, python = "bdist_wheel", m.tag
	}
	fields := append([]Field{
		{":action", "file_upload"},
		{"protocol_version", "1"},
		{"filetype", fileType},
		{"pyversion", python},
		{"sha256_digest", hex.EncodeToString(sums.SHA256)},
		{"md5_digest", hex.EncodeToString(sums.MD5)},
	}, m.Fields...)
	for _, f := range fields {
		if err := w.WriteField(f.Name, f.Value); err != nil {
			return nil, err
		}
	}
	header := textproto.MIMEHeader{}
	// a checked name: no quotes
	header.Set("Content-Disposition", fmt.Sprintf(`form-data; name="content"; filename="%s"`, file))
	header.Set("Content-Type", "application/octet-stream")
	if _, err := w.CreatePart(header); err != nil {
		return nil, err
	}
	head := bytes.Clone(buf.Bytes())
	if len(head) > maxForm {
		return nil, fmt.Errorf("%w: the form has %d bytes", ErrMetadata, len(head))
	}
	buf.Reset()
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &Form{
		ContentType: w.FormDataContentType(),
		Body:        io.MultiReader(bytes.NewReader(head), &exactReader{content, size}, &buf),
		Length:      int64(len(head)) + size + int64(buf.Len()),
	}, nil
}

// exactReader refuses a file that is shorter than was said.
type exactReader struct {
	r    io.Reader
	left int64
}

func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	if e.left -= int64(n); err == io.EOF && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
