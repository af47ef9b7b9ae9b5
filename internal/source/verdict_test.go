package source_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// verdict is the crash table, worked out from the names and nonces in the folder and from nothing of the product: what the next run must say.
//
//	"provenance"  nothing was begun, or the creation was not acknowledged here: this journal is never continued
//	"unresolved"  a request or an attempt has no end
//	"waiting"     a restriction has not passed
//	"go"          what was never attempted may be sent
func verdict(t *testing.T, dir string, now time.Time) string {
	t.Helper()
	files := map[string]map[string]any{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // a temporary file without a name
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			Payload map[string]any `json:"payload"`
		}
		if err := json.Unmarshal(data, &w); err != nil {
			t.Fatalf("%s was published half written: %v", e.Name(), err)
		}
		files[e.Name()] = w.Payload
	}
	switch {
	case len(files) == 0:
		return "provenance" // nothing was begun, and there is nothing to continue
	case files["source-ack.json"] == nil:
		return "provenance"
	}
	ended := map[any]bool{} // attempts that a restriction ends, and nonces that something finishes
	end := int64(0)
	for name, p := range files {
		if name != "pending-request.json" && p["nonce"] != nil {
			ended[p["nonce"]] = true
		}
		if strings.HasPrefix(name, "backoff-") {
			ended[p["attempt"]] = true
			end = max(end, int64(p["timing"].(map[string]any)["not_before_utc"].(float64)))
		}
	}
	if p := files["pending-request.json"]; p != nil && !ended[p["nonce"]] {
		return "unresolved"
	}
	for i := range 200 {
		for _, kind := range []string{"", "retry-"} {
			attempt := fmt.Sprintf("%sattempt-%04d.json", kind, i)
			if files[attempt] != nil && files[fmt.Sprintf("%sresult-%04d.json", kind, i)] == nil && !ended[attempt] {
				return "unresolved"
			}
		}
	}
	if now.Unix() < end {
		return "waiting"
	}
	return "go"
}

// says maps the status and code of a resume onto the words of verdict.
func says(status, code string) string {
	switch code {
	case "file-upload-provenance-missing", "private-directory-invalid":
		return "provenance"
	case "file-upload-backoff-unresolved":
		return "unresolved"
	case "file-upload-backoff-waiting":
		return "waiting"
	case "", "file-upload-nothing-eligible":
		return "go"
	}
	return status + " " + code
}
