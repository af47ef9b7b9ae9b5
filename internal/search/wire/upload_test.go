package wire_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

func uploadOf(content string) wire.Upload {
	sum := sha256.Sum256([]byte(content))
	return wire.Upload{
		Name: "guide.txt", MediaType: "text/plain", Fingerprint: "sha256:" + strings.Repeat("0123456789abcdef", 4),
		Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Content: strings.NewReader(content),
	}
}

func bodyOf(t *testing.T, u wire.Upload) *wire.Body {
	t.Helper()
	body, err := u.Body()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func readAll(t *testing.T, body io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// S74: two parts, a boundary from the fingerprint, a known length, and the same bytes each time.
func TestUploadBytes(t *testing.T) {
	const text = "hello\r\n--ecluse-x\r\n"
	upload := uploadOf(text)
	upload.Name, upload.Metadata = `guides/übung "1".txt`, map[string]string{"b": "2", "a": "1"}
	body := bodyOf(t, upload)
	bytes := readAll(t, body)
	if int64(len(bytes)) != body.Length || body.Problem() != "" {
		t.Errorf("announced %d bytes, sent %d, %s", body.Length, len(bytes), body.Problem())
	}
	media, parameters, err := mime.ParseMediaType(body.ContentType)
	if err != nil || media != "multipart/form-data" || parameters["boundary"] != "ecluse-0123456789abcdef01234567" {
		t.Fatalf("content type: %v %v %v", media, parameters, err)
	}
	reader := multipart.NewReader(strings.NewReader(bytes), parameters["boundary"])
	metadata, err := reader.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	sent := readAll(t, metadata)
	if want := `{"fileName":"guides/übung \"1\".txt","metadata":{"a":"1","b":"2"}}`; metadata.FormName() != "metadata" || sent != want {
		t.Errorf("metadata part %q: %s", metadata.FormName(), sent)
	}
	content, err := reader.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	sent = readAll(t, content)
	if content.FormName() != "content" || content.FileName() != "content" || content.Header.Get("Content-Type") != "text/plain" || sent != text {
		t.Errorf("content part %v: %q", content.Header, sent)
	}
	if _, err := reader.NextPart(); err != io.EOF {
		t.Errorf("something follows: %v", err)
	}
	again := uploadOf(text)
	again.Name, again.Metadata = upload.Name, upload.Metadata
	if readAll(t, bodyOf(t, again)) != bytes {
		t.Error("a second upload differs")
	}
}

// S70, S74: content that is not the promised one breaks off before the end of the body, and the
// problem is said in our own words.
func TestUploadContentChanged(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("he"), iotest.ErrReader(errors.New("secret")))
	for problem, content := range map[string]io.Reader{
		"the file is shorter than planned":         strings.NewReader("hell"),
		"the file is longer than planned":          strings.NewReader("hello!"),
		"the file's content differs from the plan": strings.NewReader("jello"),
		"the file cannot be read":                  broken,
	} {
		upload := uploadOf("hello")
		upload.Content = content
		body := bodyOf(t, upload)
		sent, err := io.ReadAll(body)
		if err == nil || strings.Contains(err.Error(), "secret") || int64(len(sent)) >= body.Length || body.Problem() != problem {
			t.Errorf("%s: sent %d of %d bytes, %v, problem %q", problem, len(sent), body.Length, err, body.Problem())
		}
		if n, err := body.Read(make([]byte, 8)); n != 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: read on: %d bytes, %v", problem, n, err)
		}
	}
}
