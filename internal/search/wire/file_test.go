package wire_test

import (
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

func fileOf(t *testing.T, body string) wire.File {
	t.Helper()
	document, err := wire.ParseDocument([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	file, err := wire.ParseFile(document)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// S64, S65: a record keeps which fields were present, and tells a failed file from one without the
// field.
func TestFileRecord(t *testing.T) {
	good := fileOf(t, `{"fileId":"f1","fileName":"a.txt","fileSizeBytes":5,"errorMessage":null,"metadata":{"k":"v"},"createdAt":"x"}`)
	bad := fileOf(t, `{"errorMessage":"bad"}`)
	if good.ID != "f1" || good.Name != "a.txt" || good.Failed || good.Bytes != 5 || good.Metadata["k"] != "v" || len(good.Fields) != 5 {
		t.Errorf("%+v", good)
	}
	if _, kept := good.Fields["createdAt"]; kept {
		t.Error("a field outside the digest is kept")
	}
	if value, present := good.Fields["errorMessage"]; !present || value != nil {
		t.Error("a null errorMessage is not seen as present")
	}
	if !bad.Failed || bad.Bytes != -1 || bad.Metadata != nil || len(bad.Fields) != 1 {
		t.Errorf("%+v", bad)
	}
	if file, err := wire.ParseFile(nil); err == nil {
		t.Errorf("nothing is a record: %+v", file)
	}
}

// S67: which file ids may be trusted.
func TestSafeID(t *testing.T) {
	for id, want := range map[string]bool{"f-1": true, "": false, "[withheld]": false, "-f": false, "a/b": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if wire.SafeID(id) != want {
			t.Errorf("SafeID(%q) is %v", id, !want)
		}
	}
}
