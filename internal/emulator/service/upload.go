package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"unicode"
)

const (
	maxMetadataBytes = 64 << 10
	sniffBytes       = 512
)

// upload is what is left of an uploaded file once its bytes have streamed by.
type upload struct {
	name     string
	metadata map[string]string
	bytes    int64
	digest   string
	// "" = a type that is not supported; "image" = needs more than minimal extraction
	parsing string
	hasText bool
}

// readUpload takes a multipart body apart, or in the preview a raw body with Content-Disposition.
func (v *Service) readUpload(c *call) (*upload, *Answer) {
	media, parameters, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	got := &upload{metadata: map[string]string{}}
	var problem *Answer
	switch {
	case err == nil && media == "multipart/form-data" && parameters["boundary"] != "":
		problem = v.readParts(got, multipart.NewReader(c.r.Body, parameters["boundary"]))
	case err == nil && media == "application/octet-stream" && c.version == VersionPreview && c.r.Method == http.MethodPost:
		_, disposition, dispositionErr := mime.ParseMediaType(c.r.Header.Get("Content-Disposition"))
		if dispositionErr != nil {
			return nil, badUpload("InvalidFileName", "a raw upload names its file in Content-Disposition")
		}
		got.name = disposition["filename"]
		problem = v.readContent(got, c.r.Body)
	default:
		a := Refuse(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "send multipart/form-data with the parts metadata and content")
		return nil, &a
	}
	if problem != nil {
		return nil, problem
	}
	name, ok := cleanName(got.name)
	if !ok {
		return nil, badUpload("InvalidFileName", "the file name must be relative, without empty, dot or colon parts")
	}
	got.name = name
	if got.bytes == 0 {
		return nil, badUpload("EmptyFile", "the file is empty")
	}
	got.refineParsing()
	return got, nil
}

func badUpload(code, message string) *Answer {
	a := Refuse(http.StatusBadRequest, code, message)
	return &a
}

func (v *Service) readParts(got *upload, reader *multipart.Reader) *Answer {
	var metadata, content bool
	var fallback string
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return badUpload("InvalidRequestBody", "the multipart body is broken")
		}
		switch {
		case part.FormName() == "metadata" && !metadata:
			metadata = true
			if problem := readMetadata(got, part); problem != nil {
				return problem
			}
		case part.FormName() == "content" && !content:
			content, fallback = true, part.FileName()
			if problem := v.readContent(got, part); problem != nil {
				return problem
			}
		default:
			return badUpload("InvalidRequestBody", "send one part named metadata and one named content")
		}
	}
	if !metadata || !content {
		return badUpload("InvalidRequestBody", "the parts metadata and content are both required")
	}
	if got.name == "" {
		got.name = fallback // fileName is optional in every version
	}
	return nil
}

func readMetadata(got *upload, part io.Reader) *Answer {
	data, err := io.ReadAll(io.LimitReader(part, maxMetadataBytes+1))
	if err != nil || len(data) > maxMetadataBytes {
		return badUpload("InvalidRequestBody", "the metadata part is broken or larger than 64 KiB")
	}
	var sent struct {
		FileName string            `json:"fileName"`
		Metadata map[string]string `json:"metadata"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil {
		return badUpload("InvalidRequestBody", "the metadata part must be JSON with fileName and metadata, a map of strings")
	}
	got.name = sent.FileName
	if sent.Metadata != nil {
		got.metadata = sent.Metadata
	}
	return nil
}

// readContent streams the content to its digest; only the first bytes are looked at.
func (v *Service) readContent(got *upload, content io.Reader) *Answer {
	digest := sha256.New()
	limited := io.TeeReader(io.LimitReader(content, v.limits.fileBytes+1), digest)
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(limited, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return badUpload("InvalidRequestBody", "the content ended early")
	}
	text := textSpotter{}
	_, _ = text.Write(head[:n])
	rest, err := io.Copy(&text, limited)
	if err != nil {
		return badUpload("InvalidRequestBody", "the content ended early")
	}
	got.bytes = int64(n) + rest
	if got.bytes > v.limits.fileBytes {
		a := Refuse(http.StatusRequestEntityTooLarge, "FileTooLarge", "the file is larger than this tier allows")
		return &a
	}
	got.digest = hex.EncodeToString(digest.Sum(nil))
	got.parsing = detect(head[:n])
	got.hasText = text.seen
	return nil
}

// textSpotter remembers whether anything but white space was written to it.
type textSpotter struct{ seen bool }

func (t *textSpotter) Write(p []byte) (int, error) {
	if !t.seen {
		t.seen = len(bytes.TrimFunc(p, unicode.IsSpace)) > 0
	}
	return len(p), nil
}

// detect believes the content, not the declared type.
func detect(head []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch {
	case bytes.HasPrefix(head, []byte("\x7fELF")), bytes.HasPrefix(head, []byte("MZ")):
		return ""
	case strings.HasPrefix(kind, "image/"):
		return "image"
	case strings.HasPrefix(kind, "text/"):
		return "text"
	case kind == "application/pdf", kind == "application/zip", kind == "application/json":
		// Office files are zip
		return "default"
	}
	return ""
}

// refineParsing picks the parsing mode of a text by the ending of its name.
func (u *upload) refineParsing() {
	if u.parsing != "text" {
		return
	}
	switch strings.ToLower(path.Ext(u.name)) {
	case ".md":
		u.parsing = "markdown"
	case ".json":
		u.parsing = "json"
	case ".csv":
		u.parsing = "delimitedText"
	}
}

// unfit says why a source cannot take the file, or nil.
func (u *upload) unfit(source *resource) *Answer {
	image := u.parsing == "image"
	if u.parsing == "" || (image && source.extraction() == "minimal") {
		a := Refuse(http.StatusUnsupportedMediaType, "UnsupportedFileType", "the content is not of a type that this source can extract")
		return &a
	}
	if !u.hasText {
		return badUpload("NoExtractableText", "no text can be extracted from the file")
	}
	if image {
		u.parsing = "default"
	}
	return nil
}

// cleanName turns backslashes and refuses names that could lead out of a folder.
func cleanName(name string) (string, bool) {
	name = strings.ReplaceAll(name, `\`, "/")
	if name == "" || len(name) > 1024 || strings.ContainsAny(name, ":\x00") {
		return "", false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return "", false
		}
	}
	return name, true
}
