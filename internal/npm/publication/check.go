package publication

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/npm"
)

// ErrDocument is wrapped by the errors of Check; the answer to such a request is 400.
var ErrDocument = errors.New("not a publishable document")

// Bounds of a document without its attachments.
const (
	maxOutline = 16 << 20
	maxString  = 64 << 10 // longer strings are cut in the outline: no name is as long
	maxNesting = 200
)

// Check reads a document on its way to a registry (PUT /name) and refuses one that speaks of any
// other package than name: the document's own names, those of its versions, and its attachments. It
// reads the body once and keeps none of the attachments. Members that stand twice are refused,
// since two readers could take different ones.
func Check(body io.Reader, name string) error { return check(body, name, true) }

// CheckChange is Check for a document that changes a package as it is published (PUT
// /name/-rev/…), which may leave names out.
func CheckChange(body io.Reader, name string) error { return check(body, name, false) }

func check(body io.Reader, name string, whole bool) error {
	outline, err := readOutline(body)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrDocument, err)
	}
	if err := refuseDuplicates(outline); err != nil {
		return fmt.Errorf("%w: %v", ErrDocument, err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(outline, &members); err != nil {
		return fmt.Errorf("%w: not a JSON object", ErrDocument)
	}
	for _, key := range []string{"name", "_id"} {
		if raw, ok := members[key]; ok || whole && key == "name" {
			if err := checkText(raw, key, name); err != nil {
				return err
			}
		}
	}
	if err := checkVersions(members["versions"], name); err != nil {
		return err
	}
	return checkAttachments(members["_attachments"], name)
}

func checkText(raw json.RawMessage, where string, want string) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return fmt.Errorf("%w: %s is not a string", ErrDocument, where)
	}
	if s != want {
		return fmt.Errorf("%w: %s is %.100q, must be %q", ErrDocument, where, s, want)
	}
	return nil
}

// valid reports whether a version can be in a file's name and thus be served.
func valid(name, version string) bool {
	back, ok := npm.VersionOfFile(name, npm.FileName(name, version))
	return ok && back == version
}

func checkVersions(raw json.RawMessage, name string) error {
	var versions map[string]map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &versions) != nil {
		return fmt.Errorf("%w: versions is not an object of objects", ErrDocument)
	}
	for v, members := range versions {
		if !valid(name, v) {
			return fmt.Errorf("%w: version %.100q is not valid", ErrDocument, v)
		}
		at := "versions[" + v + "]"
		if err := checkText(members["name"], at+".name", name); err != nil {
			return err
		}
		if err := checkText(members["version"], at+".version", v); err != nil {
			return err
		}
		if id, ok := members["_id"]; ok {
			if err := checkText(id, at+"._id", name+"@"+v); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAttachments wants files of the package only: its tarballs, as npm names them or by their
// short names, and their provenance.
func checkAttachments(raw json.RawMessage, name string) error {
	var attachments map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &attachments) != nil {
		return fmt.Errorf("%w: _attachments is not an object", ErrDocument)
	}
	for file := range attachments {
		short := file
		if scope, _, ok := strings.Cut(name, "/"); ok {
			short = strings.TrimPrefix(file, scope+"/")
		}
		if stem, ok := strings.CutSuffix(short, ".sigstore"); ok {
			short = stem + ".tgz"
		}
		if _, ok := npm.VersionOfFile(name, short); !ok {
			return fmt.Errorf("%w: attachment %.100q is not a file of %s", ErrDocument, file, name)
		}
	}
	return nil
}

// refuseDuplicates walks the whole document.
func refuseDuplicates(doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := walk(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("trailing data after the document")
	}
	return nil
}

func walk(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxNesting {
		return errors.New("nested too deeply")
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			k, _ := key.(string)
			if seen[k] {
				return fmt.Errorf("duplicate member %.100q", k)
			}
			seen[k] = true
		}
		if err := walk(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// readOutline reads a JSON document with its long strings cut, so that files inside it take no
// memory.
func readOutline(r io.Reader) ([]byte, error) {
	var o outline
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		o.add(buf[:n])
		if o.out.Len() > maxOutline {
			return nil, fmt.Errorf("more than %d bytes beside its attachments", maxOutline)
		}
		if err == io.EOF {
			return o.out.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// outline copies JSON text and cuts strings that are too long, never inside an escape.
type outline struct {
	out      bytes.Buffer
	inString bool
	escape   int // bytes of an escape that still follow
	length   int // of the string so far
}

func (o *outline) add(p []byte) {
	for _, c := range p {
		o.one(c)
	}
}

func (o *outline) one(c byte) {
	if !o.inString {
		o.inString, o.length = c == '"', 0
		o.out.WriteByte(c)
		return
	}
	keep := o.length < maxString
	switch {
	case o.escape > 0:
		if o.escape--; o.escape == 0 && c == 'u' {
			o.escape = -4
		}
	case o.escape < 0:
		o.escape++
	case c == '\\':
		o.escape = 1
	case c == '"':
		o.inString = false
		o.out.WriteByte(c)
		return
	}
	if keep {
		o.out.WriteByte(c)
	}
	if o.escape == 0 { // whole characters only
		o.length++
	}
}
