// Package sourcetest is the crash table of the source tool, written a second time from the
// requirements, for tests that kill a run and ask what the next one must say.
package sourcetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The verdicts of the crash table.
const (
	// Provenance: nothing was begun, or the creation was not acknowledged here: this journal is
	// never continued
	Provenance = "provenance"
	// Unresolved: a request or an attempt has no end
	Unresolved = "unresolved"
	// Waiting: a restriction has not passed
	Waiting = "waiting"
	// Go: what was never attempted may be sent
	Go = "go"
)

// Verdict is what the next run must say, worked out from the names and nonces in the folder and
// from nothing of the product.
func Verdict(tb testing.TB, dir string, now time.Time) string {
	tb.Helper()
	files := Payloads(tb, dir)
	if files["source-ack.json"] == nil {
		return Provenance
	}
	ended := map[any]bool{} // attempts that a restriction ends, and nonces that something finishes
	end := int64(0)
	for name, p := range files {
		if name != "pending-request.json" && p["nonce"] != nil {
			ended[p["nonce"]] = true
		}
		if strings.HasPrefix(name, "backoff-") {
			ended[p["attempt"]] = true
			timing, _ := p["timing"].(map[string]any)
			notBefore, _ := timing["not_before_utc"].(float64)
			end = max(end, int64(notBefore))
		}
	}
	if p := files["pending-request.json"]; p != nil && !ended[p["nonce"]] {
		return Unresolved
	}
	for i := range 200 {
		for _, kind := range []string{"", "retry-"} {
			attempt := fmt.Sprintf("%sattempt-%04d.json", kind, i)
			if files[attempt] != nil && files[fmt.Sprintf("%sresult-%04d.json", kind, i)] == nil && !ended[attempt] {
				return Unresolved
			}
		}
	}
	if now.Unix() < end {
		return Waiting
	}
	return Go
}

// Payloads reads every published file of a journal. A half-written one ends the test.
func Payloads(tb testing.TB, dir string) map[string]map[string]any {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string]map[string]any{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // a temporary file without a name
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		var w struct {
			Payload map[string]any `json:"payload"`
		}
		if err := json.Unmarshal(data, &w); err != nil {
			tb.Fatalf("%s was published half written: %v", e.Name(), err)
		}
		files[e.Name()] = w.Payload
	}
	return files
}

// Says maps the status and code of a resume onto the words of Verdict.
func Says(status, code string) string {
	switch code {
	case "file-upload-provenance-missing":
		return Provenance
	case "file-upload-backoff-unresolved":
		return Unresolved
	case "file-upload-backoff-waiting":
		return Waiting
	case "", "file-upload-nothing-eligible":
		return Go
	}
	return status + " " + code
}
