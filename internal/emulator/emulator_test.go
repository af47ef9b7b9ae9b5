package emulator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator"
)

func TestSourceLifeBothSpellings(t *testing.T) {
	s := start(t, emulator.Options{})
	definition := `{"name":"manuals","kind":"file","fileParameters":{"ingestionParameters":{"embeddingModel":{"azureOpenAIParameters":{"resourceUri":"https://x.test/","apiKey":"secret"}}}}}`
	created := s.do("PUT", at("manuals"), definition, "If-None-Match", "*", "Prefer", "return=representation", "x-ms-client-request-id", "mine-1")
	if created.status != 201 || created.header.Get("ETag") == "" || created.body["@odata.etag"] != created.header.Get("ETag") {
		t.Fatalf("create: %d %v %s", created.status, created.header, created.raw)
	}
	if created.header.Get("x-ms-client-request-id") != "mine-1" || created.header.Get("request-id") == "" {
		t.Errorf("request ids missing: %v", created.header)
	}
	if !strings.Contains(string(created.raw), `"createdResources":{"index":"manuals-index"}`) {
		t.Errorf("no created resources: %s", created.raw)
	}
	for _, path := range []string{at("manuals"), "/knowledgesources/manuals?" + version, "/knowledgesources(%27manuals%27)?" + version} {
		got := s.do("GET", path, "")
		if got.status != 200 || got.body["name"] != "manuals" {
			t.Errorf("GET %s: %d %s", path, got.status, got.raw)
		}
		if strings.Contains(string(got.raw), "secret") || strings.Contains(string(got.raw), "x.test/\"") {
			t.Errorf("secret or final slash shown: %s", got.raw)
		}
	}
	if got := s.do("GET", "/indexes('manuals-index')?"+version, ""); got.status != 200 {
		t.Errorf("generated index: %d", got.status)
	}
	if got := s.do("DELETE", at("manuals"), "", "If-Match", created.header.Get("ETag")); got.status != 204 {
		t.Fatalf("delete: %d %s", got.status, got.raw)
	}
	for _, path := range []string{at("manuals"), "/indexes('manuals-index')?" + version, filesOf("manuals")} {
		if got := s.do("GET", path, ""); got.status != 404 {
			t.Errorf("GET %s after delete: %d", path, got.status)
		}
	}
}

func TestUploadHashesAndForgets(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	first := s.upload("manuals", `guides\one.md`, "hello")
	second := s.upload("manuals", "guides/one.md", "hello")
	if first.status != 201 || second.status != 201 || first.body["fileId"] == second.body["fileId"] {
		t.Fatalf("uploads: %s %s", first.raw, second.raw)
	}
	if first.body["fileName"] != "guides/one.md" || first.body["prefix"] != "guides/" || first.body["parsingMode"] != "markdown" {
		t.Errorf("record: %s", first.raw)
	}
	if first.body["errorMessage"] != nil || first.body["fileSizeBytes"] != 5.0 {
		t.Errorf("record: %s", first.raw)
	}
	sum := sha256.Sum256([]byte("hello"))
	state := s.emulator.State()
	if files := state.Sources[0].Files; len(files) != 2 || files[0].SHA256 != hex.EncodeToString(sum[:]) || files[0].Metadata["owner"] != "me" {
		t.Errorf("state: %+v", state)
	}
}

func TestScriptedThrottleIsRecorded(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	s.script(`[{"match":{"method":"POST","path":"/files$","nth":1},"act":{"status":429,"headers":{"Retry-After":["5","5"]}}}]`)
	if got := s.upload("manuals", "a.txt", "a"); got.status != 429 || len(got.header.Values("Retry-After")) != 2 {
		t.Fatalf("first: %d %v", got.status, got.header)
	}
	if got := s.upload("manuals", "a.txt", "a"); got.status != 201 {
		t.Fatalf("second: %d %s", got.status, got.raw)
	}
	seen := s.emulator.Requests()
	if len(seen) != 3 {
		t.Fatalf("%d requests recorded", len(seen))
	}
	throttled := seen[1]
	if throttled.Answer.Status != 429 || throttled.BodyBytes == 0 || throttled.BodyPartial || throttled.Performed == nil || *throttled.Performed {
		t.Errorf("record: %+v", throttled)
	}
	if throttled.Headers.Get("Authorization") != "" || !throttled.HasToken {
		t.Error("the token is in the record, or was not noticed")
	}
	if len(s.emulator.State().Sources[0].Files) != 1 {
		t.Error("the throttled upload was stored")
	}
}
