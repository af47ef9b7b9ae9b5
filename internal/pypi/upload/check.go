package upload

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// ErrForm is wrapped by the errors of CheckForm; the answer to such a request is 400.
var ErrForm = errors.New("not a valid upload form")

// Bounds of a form.
const (
	maxFormFields = 2000
	maxFormField  = 8 << 20
	maxFormText   = 16 << 20
)

// checked is what CheckForm keeps of an upload.
type checked struct {
	values map[string]string // of the fields that may stand once
	file   string
	fields int
	text   int64
}

// CheckForm reads an upload form on its way to an index and gives the project that it is for,
// normalised. A form whose file is not one of that project is refused, and so is one that two
// readers could understand in different ways: fields that stand twice, parts with unusual names. It
// reads the body once and keeps nothing of the file.
func CheckForm(contentType string, body io.Reader) (project string, err error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return "", fmt.Errorf("%w: it must be multipart/form-data with a boundary", ErrForm)
	}
	c := checked{values: map[string]string{}}
	r := multipart.NewReader(body, params["boundary"])
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			break
		} else if err != nil {
			return "", fmt.Errorf("%w: %v", ErrForm, err)
		}
		if err := c.take(part); err != nil {
			return "", fmt.Errorf("%w: %v", ErrForm, err)
		}
	}
	return c.project()
}

// NameOf reads an upload form up to its name and gives the project, normalised. False says that the
// name does not come before the file, or is none: CheckForm has the last word on such a form. It
// may read more of the body than that.
func NameOf(contentType string, body io.Reader) (project string, ok bool) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return "", false
	}
	c := checked{values: map[string]string{}}
	for r := multipart.NewReader(body, params["boundary"]); ; {
		part, err := r.NextRawPart()
		if err != nil || part.FileName() != "" || part.FormName() == "content" || c.take(part) != nil {
			return "", false
		}
		if name, there := c.values["name"]; there {
			project, err = naming.ParseName(name)
			return project, err == nil
		}
	}
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

func (c *checked) take(part *multipart.Part) error {
	if c.fields++; c.fields > maxFormFields {
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
	if _, twice := c.values[name]; twice && single(name) {
		return fmt.Errorf("duplicate field %s", name)
	}
	if name == "content" {
		c.file, c.values[name] = params["filename"], ""
		_, err := io.Copy(io.Discard, part)
		return err
	}
	if file, ok := params["filename"]; ok {
		if name != "gpg_signature" {
			return fmt.Errorf("the field %.64q is a file", name)
		}
		c.values[name] = file
		_, err := io.Copy(io.Discard, io.LimitReader(part, maxFormField))
		return err
	}
	text, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	if c.text += int64(len(text)); err == nil && (len(text) > maxFormField || c.text > maxFormText) {
		err = errors.New("its text is too long")
	}
	if single(name) {
		c.values[name] = string(text)
	} else if strings.EqualFold(name, "name") || strings.EqualFold(name, "content") || strings.TrimSpace(name) != name {
		return fmt.Errorf("the field %.64q duplicates another one in a different spelling", name)
	}
	return err
}

func (c *checked) project() (string, error) {
	if c.values[":action"] != "file_upload" {
		return "", fmt.Errorf("%w: the action %.64q is not an upload", ErrForm, c.values[":action"])
	}
	project, err := naming.ParseName(c.values["name"])
	if err != nil {
		return "", fmt.Errorf("%w: %v", ErrForm, err)
	}
	inFile, _, ok := naming.VersionOfFile(project, c.file)
	if !ok {
		return "", fmt.Errorf("%w: %.100q is not a file of %s", ErrForm, c.file, project)
	}
	if version, ok := naming.NormalizeVersion(c.values["version"]); !ok || naming.EqualKey(version) != naming.EqualKey(inFile) {
		return "", fmt.Errorf("%w: %.100q is not a file of version %.64q", ErrForm, c.file, c.values["version"])
	}
	if signature, ok := c.values["gpg_signature"]; ok && signature != c.file+".asc" {
		return "", fmt.Errorf("%w: %.100q is not the signature of %s", ErrForm, signature, c.file)
	}
	return project, nil
}
