package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
)

// Whatever stands in one file of a journal, loading it neither panics nor accepts what the writer
// could not have written: an accepted file has a payload whose digest it states.
func FuzzFile(f *testing.F) {
	good := contents(f, withMarker(f))
	for name, data := range good {
		f.Add(name, data)
	}
	f.Add("result-0007.json", []byte(`{"integrity":"","kind":"file-upload-journal","payload":{},"schema_version":"1.0"}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		files := map[string][]byte{name: data}
		for n, d := range good {
			if n != name {
				files[n] = d
			}
		}
		r, faults, err := journal.Files(files).Inspect(layout)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Status(reviewTime, "")
		_ = r.Doubts()
		for _, fault := range faults {
			if fault.Error() == "" || fault.Code == "" {
				t.Fatalf("a fault without words: %+v", fault)
			}
		}
		if len(faults) > 0 {
			return
		}
		var w struct {
			Payload   json.RawMessage `json:"payload"`
			Integrity string          `json:"integrity"`
		}
		if err := json.Unmarshal(data, &w); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		if digest, err := strictjson.Digest(w.Payload); err != nil || digest != w.Integrity {
			t.Fatalf("accepted %q with %s, %v", data, digest, err)
		}
	})
}
