package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"strings"
)

// Upload is one file to send (S74). The bytes of the request depend on nothing else, so a permitted
// retry sends the same.
type Upload struct {
	// Name and Metadata go into the metadata part.
	Name     string
	Metadata map[string]string
	// MediaType is the declared type of the content part.
	MediaType string
	// Fingerprint is the plan's, with or without "sha256:"; its first 24 hexadecimal digits make
	// the boundary.
	Fingerprint string
	// Bytes and SHA256 (64 hexadecimal digits) are what Content must be. The content is hashed
	// while it is sent; when it turns out to be something else, the body breaks off before its end
	// and Problem says why.
	Bytes  int64
	SHA256 string
	// Content is read once, in small pieces, and never after the method returned. The caller closes
	// it.
	Content io.Reader
	// Progress, when set, is called with how many bytes of the content have been handed to the
	// transport. It is called from another goroutine, one call at a time, and never after the
	// method returned.
	Progress func(sent int64)
}

// Body is the multipart body of an upload: head, content, tail. It can be read once.
type Body struct {
	io.Reader
	ContentType string
	Length      int64
	content     *checkedContent
}

// Problem says why the content could not be sent, or "".
func (b *Body) Problem() string { return b.content.bad }

// Body makes the body, or says what keeps the upload from being one. Nothing is read yet.
func (u Upload) Body() (*Body, error) {
	boundary, err := boundaryOf(u.Fingerprint)
	if err != nil {
		return nil, err
	}
	if _, _, err := mime.ParseMediaType(u.MediaType); err != nil || strings.ContainsAny(u.MediaType, "\r\n") {
		return nil, errors.New("invalid media type")
	}
	want, err := hex.DecodeString(u.SHA256)
	if err != nil || len(want) != sha256.Size || u.Bytes < 1 || u.Content == nil || u.Name == "" {
		return nil, errors.New("an upload needs a name, a content, its size and its SHA-256")
	}
	metadata := u.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	described, err := json.Marshal(struct {
		FileName string            `json:"fileName"`
		Metadata map[string]string `json:"metadata"`
	}{u.Name, metadata})
	if err != nil {
		return nil, errors.New("the metadata cannot be encoded")
	}
	var head bytes.Buffer
	head.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"metadata\"\r\nContent-Type: application/json\r\n\r\n")
	head.Write(described)
	head.WriteString("\r\n--" + boundary + "\r\nContent-Disposition: form-data; name=\"content\"; filename=\"content\"\r\nContent-Type: " + u.MediaType + "\r\n\r\n")
	tail := "\r\n--" + boundary + "--\r\n"
	content := &checkedContent{source: u.Content, left: u.Bytes, want: want, digest: sha256.New(), progress: u.Progress}
	return &Body{
		Reader:      io.MultiReader(&head, content, strings.NewReader(tail)),
		ContentType: "multipart/form-data; boundary=" + boundary,
		Length:      int64(head.Len()) + u.Bytes + int64(len(tail)),
		content:     content,
	}, nil
}

func boundaryOf(fingerprint string) (string, error) {
	digits := strings.TrimPrefix(fingerprint, "sha256:")
	if len(digits) < 24 {
		return "", errors.New("the fingerprint is too short for a boundary")
	}
	for _, c := range []byte(digits[:24]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", errors.New("the fingerprint is not lower-case hexadecimal")
		}
	}
	return "ecluse-" + digits[:24], nil
}

// checkedContent passes exactly the promised bytes on, and fails at their end unless they are the
// promised ones.
type checkedContent struct {
	source   io.Reader
	left     int64
	sent     int64
	want     []byte
	digest   hash.Hash
	progress func(int64)
	bad      string
}

var errContent = errors.New("the content differs from what was announced")

func (c *checkedContent) Read(p []byte) (int, error) {
	if c.bad != "" {
		return 0, errContent
	}
	if c.left == 0 {
		return 0, c.verify()
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.source.Read(p)
	c.left -= int64(n)
	c.sent += int64(n)
	c.digest.Write(p[:n])
	if c.progress != nil && n > 0 {
		c.progress(c.sent)
	}
	switch {
	case err == nil || (errors.Is(err, io.EOF) && c.left == 0):
		return n, nil
	case errors.Is(err, io.EOF):
		c.bad = "the file is shorter than planned"
	default:
		c.bad = "the file cannot be read"
	}
	return n, errContent
}

// verify is the end of the content: nothing may follow, and the digest must be right.
func (c *checkedContent) verify() error {
	var extra [1]byte
	if n, err := io.ReadFull(c.source, extra[:]); n != 0 || !errors.Is(err, io.EOF) {
		c.bad = "the file is longer than planned"
		return errContent
	}
	if !bytes.Equal(c.digest.Sum(nil), c.want) {
		c.bad = "the file's content differs from the plan"
		return errContent
	}
	return io.EOF
}
