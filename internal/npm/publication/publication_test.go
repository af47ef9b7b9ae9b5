package publication

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The document is JSON of the length that was said, holds the file once and passes its own check.
func TestPublicationDocument(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 24<<10 - 1, 24 << 10, 24<<10 + 1, 200_000} {
		file := bytes.Repeat([]byte{0, 1, 0xfe}, size/3+1)[:size]
		p := Version{Name: "@pub/scoped", Number: "1.0.0", Manifest: []byte(`{"name":"@pub/scoped","version":"1.0.0"}`), Tag: "mirror", Size: int64(size)}
		for _, slow := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
			body, length, err := p.Document(slow(bytes.NewReader(file)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil || int64(len(text)) != length {
				t.Fatalf("size %d: %d bytes, said %d: %v", size, len(text), length, err)
			}
			var doc struct {
				Tags        map[string]string `json:"dist-tags"`
				Attachments map[string]struct {
					Data   []byte
					Length int
				} `json:"_attachments"`
			}
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			a := doc.Attachments["@pub/scoped-1.0.0.tgz"]
			if !bytes.Equal(a.Data, file) || a.Length != size || len(doc.Tags) != 1 || doc.Tags["mirror"] != "1.0.0" {
				t.Errorf("size %d: another file, or tags %v", size, doc.Tags)
			}
			if err := Check(bytes.NewReader(text), p.Name); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestPublicationOfAnotherLength(t *testing.T) {
	for _, said := range []int64{9, 11} {
		body, _, err := Version{Name: "a", Number: "1.0.0", Manifest: []byte(`{}`), Tag: "t", Size: said}.Document(strings.NewReader("0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(body); !errors.Is(err, errLength) {
			t.Errorf("said %d of 10: %v", said, err)
		}
	}
	if _, _, err := (Version{Manifest: []byte(`{`)}).Document(strings.NewReader("")); err == nil {
		t.Error("a manifest that is not JSON")
	}
}

// An attachment takes no memory, wherever escapes fall.
func TestCheckCutsLongStrings(t *testing.T) {
	head := `{"name":"a","versions":{"1.0.0":{"name":"a","version":"1.0.0"}},"readme":"`
	for shift := range 8 {
		for _, unit := range []string{`é\"`, `\\`, `\u00e9`, `x\ud83d\ude00`, "é"} {
			doc := head + strings.Repeat("x", shift) + strings.Repeat(unit, maxString/2) + `","_attachments":{"a-1.0.0.tgz":{"data":"` + strings.Repeat("QUJD", 2*maxString) + `"}}}`
			if !json.Valid([]byte(doc)) {
				t.Fatal("the test's document is not JSON")
			}
			if err := Check(iotest.OneByteReader(strings.NewReader(doc)), "a"); err != nil {
				t.Fatalf("%q shifted by %d: %v", unit, shift, err)
			}
		}
	}
	big := `{"name":"a","keywords":[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 20_000) + `"x"]}`
	if err := Check(strings.NewReader(big), "a"); !errors.Is(err, ErrDocument) {
		t.Errorf("20 MB of names: %v", err)
	}
	if err := Check(strings.NewReader(strings.Repeat(`{"a":`, 300)), "a"); !errors.Is(err, ErrDocument) {
		t.Errorf("deep nesting: %v", err)
	}
}

// What Check takes names no other package, whatever reads it.
func FuzzCheck(f *testing.F) {
	f.Add(`{"name":"a","_id":"a","versions":{"1.0.0":{"name":"a","version":"1.0.0"}},"_attachments":{"a-1.0.0.tgz":{"data":"` + base64.StdEncoding.EncodeToString([]byte("x")) + `"}}}`)
	f.Add(`{"name":"a","na\u006de":"b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if Check(strings.NewReader(text), "a") != nil {
			return
		}
		var doc struct {
			Name     *string
			Versions map[string]struct{ Name string }
		}
		d := json.NewDecoder(strings.NewReader(text))
		var exact map[string]any
		if err := json.Unmarshal([]byte(text), &exact); err != nil || exact["name"] != "a" {
			t.Fatalf("%q: %v %v", text, exact["name"], err)
		}
		_ = d.Decode(&doc)
		for v, m := range doc.Versions {
			if versions, _ := exact["versions"].(map[string]any); versions[v] != nil && versions[v].(map[string]any)["name"] != "a" {
				t.Errorf("%q: version %s is of %q", text, v, m.Name)
			}
		}
	})
}
