// Package publication is how versions are put into an npm registry: the document that carries one,
// and the check of a document that somebody else made.
package publication

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Version is one version on its way to a registry.
type Version struct {
	Name   string
	Number string
	// Manifest is the version's object, a JSON object.
	Manifest []byte
	// Tag is the dist-tag that the registry moves to the version. Registries want one; it should be
	// one that no one installs by.
	Tag string
	// Size is the length of the file in bytes.
	Size int64
}

// Document is the body by which npm registries take a version (PUT /name), with the file read once
// and encoded on its way, so that it is never whole in memory. Length is the body's length in
// bytes; a file of another length than Size ends the body with an error.
func (p Version) Document(file io.Reader) (body io.Reader, length int64, err error) {
	if !json.Valid(p.Manifest) {
		return nil, 0, fmt.Errorf("the manifest of %s@%s is not JSON", p.Name, p.Number)
	}
	quote := func(s string) string {
		b, _ := json.Marshal(s) // strings cannot fail
		return string(b)
	}
	name, version := quote(p.Name), quote(p.Number)
	head := `{"_id":` + name + `,"name":` + name + `,"dist-tags":{` + quote(p.Tag) + `:` + version + `},"versions":{` + version + `:` + string(p.Manifest) +
		`},"_attachments":{` + quote(p.Name+"-"+p.Number+".tgz") + `:{"content_type":"application/octet-stream","length":` + strconv.FormatInt(p.Size, 10) + `,"data":"`
	const tail = `"}}}`
	length = int64(len(head)) + encodedLen(p.Size) + int64(len(tail))
	return io.MultiReader(strings.NewReader(head), &base64Reader{from: file, left: p.Size}, strings.NewReader(tail)), length, nil
}

func encodedLen(n int64) int64 { return (n + 2) / 3 * 4 }

// base64Reader encodes what it reads, a multiple of three bytes at a time.
type base64Reader struct {
	from io.Reader
	left int64
	raw  [24 << 10]byte
	text []byte
	buf  [32 << 10]byte
}

var errLength = errors.New("the file's length differs from the announced one")

func (b *base64Reader) Read(p []byte) (int, error) {
	for len(b.text) == 0 {
		if b.left == 0 {
			if n, _ := b.from.Read(b.raw[:1]); n > 0 {
				return 0, errLength
			}
			return 0, io.EOF
		}
		n, err := io.ReadFull(b.from, b.raw[:min(int64(len(b.raw)), b.left)])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return 0, errLength
		} else if err != nil {
			return 0, err
		}
		b.left -= int64(n)
		base64.StdEncoding.Encode(b.buf[:], b.raw[:n])
		b.text = b.buf[:base64.StdEncoding.EncodedLen(n)]
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, nil
}
