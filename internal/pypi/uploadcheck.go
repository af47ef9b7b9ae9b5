package pypi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// ErrUpload is wrapped by the errors of CheckUpload; the answer to such a request is 400.
var ErrUpload = errors.New("not a valid upload form")

// Bounds of a form.
const (
	maxFormFields = 2000
	maxFormField  = 8 << 20
	maxFormText   = 16 << 20
)

// form is what CheckUpload keeps of an upload.
type form struct {
	values map[string]string // of the fields that may stand once
	file   string
	fields int
	text   int64
}

// CheckUpload reads an upload form on its way to an index and gives the project that it is for,
// normalised. A form whose file is not one of that project is refused, and so is one that two
// readers could understand in different ways: fields that stand twice, parts with unusual names. It
// reads the body once and keeps nothing of the file.
func CheckUpload(contentType string, body io.Reader) (project string, err error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return "", fmt.Errorf("%w: it must be multipart/form-data with a boundary", ErrUpload)
	}
	f := form{values: map[string]string{}}
	r := multipart.NewReader(body, params["boundary"])
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			break
		} else if err != nil {
			return "", fmt.Errorf("%w: %v", ErrUpload, err)
		}
		if err := f.take(part); err != nil {
			return "", fmt.Errorf("%w: %v", ErrUpload, err)
		}
	}
	return f.project()
}

// single are the fields that an index reads one value of.
func single(name string) bool {
	switch name {
	case ":action", "protocol_version", "name", "version", "filetype", "pyversion", "metadata_version", "sha256_digest", "md5_digest",
		"blake2_256_digest", "content":
		return true
	}
	return false
}

func (f *form) take(part *multipart.Part) error {
	if f.fields++; f.fields > maxFormFields {
		return fmt.Errorf("more than %d fields", maxFormFields)
	}
	disposition, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	name := params["name"]
	if err != nil || disposition != "form-data" || name == "" || len(part.Header.Values("Content-Disposition")) != 1 {
		return errors.New("a part without a name")
	}
	for key := range params {
		if key != "name" && key != "filename" {
			return fmt.Errorf("a part with the parameter %.64q", key)
		}
	}
	if _, twice := f.values[name]; twice && single(name) {
		return fmt.Errorf("duplicate field %s", name)
	}
	if name == "content" {
		f.file, f.values[name] = params["filename"], ""
		_, err := io.Copy(io.Discard, part)
		return err
	}
	if file, ok := params["filename"]; ok {
		if name != "gpg_signature" {
			return fmt.Errorf("the field %.64q is a file", name)
		}
		f.values[name] = file
		_, err := io.Copy(io.Discard, io.LimitReader(part, maxFormField))
		return err
	}
	text, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	if f.text += int64(len(text)); err == nil && (len(text) > maxFormField || f.text > maxFormText) {
		err = errors.New("its text is too long")
	}
	if single(name) {
		f.values[name] = string(text)
	} else if strings.EqualFold(name, "name") || strings.EqualFold(name, "content") || strings.TrimSpace(name) != name {
		return fmt.Errorf("the field %.64q duplicates another one in a different spelling", name)
	}
	return err
}

func (f *form) project() (string, error) {
	if f.values[":action"] != "file_upload" {
		return "", fmt.Errorf("%w: the action %.64q is not an upload", ErrUpload, f.values[":action"])
	}
	project, err := naming.ParseName(f.values["name"])
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrUpload, err)
	}
	inFile, _, ok := naming.VersionOfFile(project, f.file)
	if !ok {
		return "", fmt.Errorf("%w: %.100q is not a file of %s", ErrUpload, f.file, project)
	}
	if version, ok := naming.NormalizeVersion(f.values["version"]); !ok || naming.EqualKey(version) != naming.EqualKey(inFile) {
		return "", fmt.Errorf("%w: %.100q is not a file of version %.64q", ErrUpload, f.file, f.values["version"])
	}
	if signature, ok := f.values["gpg_signature"]; ok && signature != f.file+".asc" {
		return "", fmt.Errorf("%w: %.100q is not the signature of %s", ErrUpload, signature, f.file)
	}
	return project, nil
}
