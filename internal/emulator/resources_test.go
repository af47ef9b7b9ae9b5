package emulator_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator"
)

// Row by row: who may ask, for what, in which version.
func TestDoor(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	for _, c := range []struct {
		method, path string
		status       int
		headers      []string
	}{
		{"GET", at("manuals"), 200, nil},
		{"GET", at("manuals"), 401, []string{"Authorization", ""}},
		{"GET", at("manuals"), 401, []string{"Authorization", "Bearer "}},
		{"GET", at("manuals"), 401, []string{"Authorization", "Basic x"}},
		{"GET", "/knowledgesources('manuals')", 400, nil},
		{"GET", "/knowledgesources('manuals')?api-version=2026-04-01", 400, nil},
		{"GET", "/knowledgesources('manuals')?api-version=2026-05-01-preview", 400, nil},
		{"GET", at("manuals") + "&api-version=2026-10-01", 400, nil},
		{"GET", "/knowledgesources('manuals')?api-version=2026-08-01-preview", 200, nil},
		{"GET", "/synonymmaps?" + version, 404, nil},
		{"GET", "/knowledgesources('manuals')/nothing?" + version, 404, nil},
		{"GET", "/knowledgesources('')?" + version, 404, nil},
		{"GET", "/?" + version, 404, nil},
		{"PATCH", at("manuals"), 405, nil},
		{"DELETE", "/indexes('manuals-index')?" + version, 405, nil},
		{"PUT", "/knowledgesources('manuals')/status?" + version, 405, nil},
		{"GET", "/knowledgesources('other')/status?" + version, 404, nil},
		{"GET", "/indexers('other')/search.status?" + version, 404, nil},
	} {
		if got := s.do(c.method, c.path, "", c.headers...); got.status != c.status {
			t.Errorf("%s %s %v: %d, want %d", c.method, c.path, c.headers, got.status, c.status)
		}
	}
	fixed := start(t, emulator.Options{Token: "only"})
	if got := fixed.do("GET", at("x"), ""); got.status != 401 {
		t.Errorf("another token than the fixed one: %d", got.status)
	}
	if got := fixed.do("GET", at("x"), "", "Authorization", "Bearer only"); got.status != 404 {
		t.Errorf("the fixed token: %d", got.status)
	}
}

// ETags and conditions: create only when absent, update and delete only when unchanged.
func TestConditions(t *testing.T) {
	s := start(t, emulator.Options{})
	first := s.createFileSource("manuals").header.Get("ETag")
	definition := `{"kind":"file","fileParameters":{},"description":"two"}`
	if got := s.do("PUT", at("manuals"), definition, "If-None-Match", "*"); got.status != 412 {
		t.Errorf("create over an existing one: %d", got.status)
	}
	if got := s.do("PUT", at("absent"), definition, "If-Match", "*"); got.status != 412 {
		t.Errorf("update of an absent one: %d", got.status)
	}
	updated := s.do("PUT", at("manuals"), definition, "If-Match", first)
	second := updated.header.Get("ETag")
	if updated.status != 200 || second == first || updated.body["description"] != "two" {
		t.Fatalf("update: %d %s", updated.status, updated.raw)
	}
	if got := s.do("PUT", at("manuals"), definition, "If-Match", first); got.status != 412 {
		t.Errorf("update with a stale ETag: %d", got.status)
	}
	if got := s.do("DELETE", at("manuals"), "", "If-Match", first); got.status != 412 {
		t.Errorf("delete with a stale ETag: %d", got.status)
	}
	if got := s.do("GET", at("manuals"), ""); got.header.Get("ETag") != second {
		t.Errorf("a refused write changed the resource: %s", got.raw)
	}
	if got := s.do("POST", "/knowledgesources?"+version, `{"name":"manuals","kind":"file","fileParameters":{}}`); got.status != 409 {
		t.Errorf("POST over an existing one: %d", got.status)
	}
	if got := s.do("POST", "/knowledgesources?"+version, `{"name":"more","kind":"file","fileParameters":{}}`); got.status != 201 {
		t.Errorf("POST: %d", got.status)
	}
	if got := s.do("DELETE", at("absent"), ""); got.status != 404 {
		t.Errorf("delete of an absent one: %d", got.status)
	}
}

// Definitions that the service refuses.
func TestRefusedDefinitions(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	for body, status := range map[string]int{
		``:                                      400,
		`[]`:                                    400,
		`{"kind":"file"}`:                       400,
		`{"fileParameters":{}}`:                 400,
		`{"kind":"file","fileParameters":{}} x`: 400,
		`{"name":"other","kind":"file","fileParameters":{}}`: 400,
		// the kind cannot change
		`{"kind":"web","webParameters":{}}`: 400,
		`{"kind":"file","fileParameters":{"ingestionParameters":{"networkAccessMode":"private"}}}`: 400,
		`{"description":"` + strings.Repeat("x", 1<<20) + `"}`:                                     413,
	} {
		if got := s.do("PUT", at("manuals"), body); got.status != status {
			t.Errorf("%.70s: %d, want %d", body, got.status, status)
		}
	}
	if got := s.do("PUT", at(strings.Repeat("n", 129)), `{"kind":"file","fileParameters":{}}`); got.status != 400 {
		t.Errorf("long name: %d", got.status)
	}
}

// A blob source generates four children, conceals what is secret, and takes everything with it.
func TestBlobSource(t *testing.T) {
	s := start(t, emulator.Options{})
	blob := func(connection string) string {
		return `{"kind":"azureBlob","azureBlobParameters":{"connectionString":"` + connection + `","containerName":"c"}}`
	}
	if got := s.do("PUT", at("docs"), blob("ResourceId=/subscriptions/1/x;")); got.status != 201 {
		t.Fatalf("create: %s", got.raw)
	}
	if got := s.do("PUT", at("keyed"), blob("AccountName=a;AccountKey=secret")); got.status != 201 {
		t.Fatalf("create: %s", got.raw)
	}
	if got := s.do("GET", at("docs"), ""); !strings.Contains(string(got.raw), `"connectionString":"\u003credacted\u003e"`) {
		t.Errorf("connection string not redacted: %s", got.raw)
	}
	for _, child := range []string{"indexes('docs-index')", "indexers('docs-indexer')", "skillsets('docs-skillset')", "datasources('docs-datasource')", "indexers/docs-indexer"} {
		if got := s.do("GET", "/"+child+"?"+version, ""); got.status != 200 || got.header.Get("ETag") == "" {
			t.Errorf("%s: %d", child, got.status)
		}
	}
	shown := s.do("GET", "/datasources('docs-datasource')?includeConnectionString=true&"+version, "")
	if !strings.Contains(string(shown.raw), "ResourceId=/subscriptions/1/x") {
		t.Errorf("visible connection string: %s", shown.raw)
	}
	hidden := s.do("GET", "/datasources('keyed-datasource')?includeConnectionString=true&"+version, "")
	if strings.Contains(string(hidden.raw), "secret") {
		t.Errorf("a secret is shown: %s", hidden.raw)
	}
	for _, path := range []string{"/indexers('docs-indexer')/search.status?", "/indexers('docs-indexer')/status?"} {
		if got := s.do("GET", path+version, ""); got.status != 200 || got.body["status"] != "running" || got.body["limits"] == nil {
			t.Errorf("%s: %d %s", path, got.status, got.raw)
		}
	}
	if got := s.do("POST", filesOf("docs"), "x"); got.status != 400 {
		t.Errorf("a file for a blob source: %d", got.status)
	}
	if got := s.do("DELETE", at("docs"), ""); got.status != 204 {
		t.Fatalf("delete: %s", got.raw)
	}
	for _, list := range []string{"indexers", "skillsets", "datasources", "indexes"} {
		got := s.do("GET", "/"+list+"?"+version, "")
		if strings.Contains(string(got.raw), "docs-") || !strings.Contains(string(got.raw), "keyed-") {
			t.Errorf("%s after the delete: %s", list, got.raw)
		}
	}
}

// A source in use cannot be deleted, and the answer names the bases.
func TestSourceInUse(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	base := func(name string) string { return "/knowledgebases('" + name + "')?" + version }
	if got := s.do("PUT", base("library"), `{"knowledgeSources":[{"name":"absent"}]}`); got.status != 400 {
		t.Errorf("a base with an absent source: %d", got.status)
	}
	for _, name := range []string{"library", "archive"} {
		if got := s.do("PUT", base(name), `{"knowledgeSources":[{"name":"manuals"}]}`); got.status != 201 {
			t.Fatalf("base: %s", got.raw)
		}
	}
	got := s.do("DELETE", at("manuals"), "")
	if got.status != 409 || !strings.Contains(got.message(), "archive, library") {
		t.Errorf("delete in use: %d %s", got.status, got.raw)
	}
	s.do("DELETE", base("library"), "")
	s.do("DELETE", base("archive"), "")
	if got := s.do("DELETE", at("manuals"), ""); got.status != 204 {
		t.Errorf("delete after use: %d", got.status)
	}
}

// Limits of the tiers: a quota is a 429 with an empty code that no wait will cure.
func TestTierLimits(t *testing.T) {
	s := start(t, emulator.Options{Tier: "Free"})
	for i := range 3 {
		s.createFileSource(fmt.Sprintf("s%d", i))
	}
	got := s.do("PUT", at("s3"), `{"kind":"file","fileParameters":{}}`)
	if got.status != 429 || got.code() != "" || !strings.Contains(got.message(), "quota") || got.header.Get("Retry-After") != "" {
		t.Errorf("fourth source on Free: %d %s %v", got.status, got.raw, got.header)
	}
	if got := s.do("PUT", at("s0"), `{"kind":"file","fileParameters":{}}`); got.status != 200 {
		t.Errorf("an update counts against the quota: %d", got.status)
	}
	for i := range 4 {
		got := s.do("PUT", fmt.Sprintf("/knowledgebases('b%d')?%s", i, version), `{"knowledgeSources":[]}`)
		if want := map[bool]int{true: 201, false: 429}[i < 3]; got.status != want {
			t.Errorf("base %d: %d, want %d", i, got.status, want)
		}
	}
	many := s.do("PUT", "/knowledgebases('b0')?"+version, `{"knowledgeSources":[{"name":"s0"},{"name":"s1"},{"name":"s2"},{"name":"s0"}]}`)
	if many.status != 400 {
		t.Errorf("four sources in a base on Free: %d", many.status)
	}
	if got := start(t, emulator.Options{Tier: "s3hd"}).do("PUT", at("x"), `{"kind":"file","fileParameters":{}}`); got.status != 429 {
		t.Errorf("a source on S3 HD: %d", got.status)
	}
	if _, err := emulator.New(emulator.Options{Tier: "gold"}); err == nil {
		t.Error("an unknown tier was taken")
	}
}

// Lists are paged by the server: pageSize, search, and a token that excludes both.
func TestPagedLists(t *testing.T) {
	s := start(t, emulator.Options{Tier: "s1"})
	for _, name := range []string{"a1", "a2", "a3", "b1"} {
		s.createFileSource(name)
	}
	var names []string
	next := "/knowledgesources?pageSize=2&search=a&searchType=prefix&" + version
	for next != "" {
		got := s.do("GET", next, "")
		if got.status != 200 || len(names) > 8 {
			t.Fatalf("%s: %d %s", next, got.status, got.raw)
		}
		for _, v := range got.body["value"].([]any) {
			names = append(names, v.(map[string]any)["name"].(string))
		}
		next, _ = got.body["@odata.nextLink"].(string)
	}
	if strings.Join(names, " ") != "a1 a2 a3" {
		t.Errorf("names: %v", names)
	}
	for _, bad := range []string{"pageSize=0", "pageSize=3001", "pageSize=x", "searchType=full&search=a", "$skiptoken=!", "$skiptoken=YQ", "$skiptoken=x&pageSize=2", "$skiptoken=x&search=a"} {
		if got := s.do("GET", "/knowledgesources?"+bad+"&"+version, ""); got.status != 400 {
			t.Errorf("%s: %d", bad, got.status)
		}
	}
}
