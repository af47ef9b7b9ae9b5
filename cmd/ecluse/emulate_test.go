package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

// The emulator as a user starts it: it says where it listens, follows the script of its file and of
// the admin call, shows what it saw, and stops with 0.
func TestEmulateSearch(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.json")
	rules := `[{"match":{"method":"GET","path":"/knowledgesources","nth":1},"act":{"status":429,"headers":{"Retry-After":"60"}}}]`
	if err := os.WriteFile(script, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "emulate", "search", "--listen", "127.0.0.1:0", "--script", script)
	url := p.address(t)
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer anything")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	const list = "/knowledgesources?api-version=2026-10-01"
	if resp := ask(http.MethodGet, list, ""); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "60" {
		t.Errorf("the file's script: %d", resp.StatusCode)
	}
	if resp := ask(http.MethodGet, list, ""); resp.StatusCode != 200 {
		t.Errorf("after the first match: %d", resp.StatusCode)
	}
	if resp := ask(http.MethodPut, "/emulator/script", `[{"match":{},"act":{"status":503}}]`); resp.StatusCode != 200 {
		t.Errorf("a new script: %d", resp.StatusCode)
	}
	if resp := ask(http.MethodGet, list, ""); resp.StatusCode != 503 {
		t.Errorf("the new script: %d", resp.StatusCode)
	}
	if code, body := fetch(t, url+"/emulator/requests"); code != 200 || strings.Count(body, `"seq"`) != 3 || strings.Contains(body, "anything") {
		t.Errorf("requests: %d %s", code, body)
	}
	p.stop()
	if code := <-p.code; code != int(cli.Done) {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
}
