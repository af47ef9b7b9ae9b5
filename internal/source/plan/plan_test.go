package plan_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
)

const goodRequest = `{"schema_version":"1.0","kind":"file","endpoint":"https://demo.search.windows.net","name":"manuals","owner":"team@x",
"local_root":"/srv/docs","paths":["guide.txt","sub/b.md"],"service_tier":"basic","extraction_mode":"minimal","api_version":"2026-10-01",
"metadata":{"guide.txt":{"lang":"en"}},"network":{"mode":"public"},"rbac":{"role":"Search Service Contributor","principal":"team"},
"vectorization":{"resource_uri":"https://ai.example.com/","deployment_id":"emb","model_name":"text-embedding-3-large"}}`

func refusal(t *testing.T, err error) *plan.Refusal {
	t.Helper()
	r, ok := errors.AsType[*plan.Refusal](err)
	if !ok {
		t.Fatalf("err = %v, want a *plan.Refusal", err)
	}
	return r
}

func TestParseRequest(t *testing.T) {
	r, err := plan.ParseRequest([]byte(goodRequest))
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "manuals" || len(r.Paths) != 2 || r.Metadata["guide.txt"]["lang"] != "en" || r.Vectorization.ModelName == "" {
		t.Errorf("read as %+v", r)
	}
	definition, _ := json.Marshal(r.Definition())
	for _, want := range []string{`"kind":"file"`, `"contentExtractionMode":"minimal"`, `"modelName":"text-embedding-3-large"`} {
		if !strings.Contains(string(definition), want) {
			t.Errorf("definition %s lacks %s", definition, want)
		}
	}
}

// Every refusal of a request names its code and its field, and happens before anything else is done
// with it (S68, S69, S70, S145, closed schema).
func TestParseRequestRefuses(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(goodRequest, old) {
			t.Fatalf("the request has no %s", old)
		}
		return strings.Replace(goodRequest, old, new, 1)
	}
	for _, tt := range []struct{ name, data, code, field string }{
		{"repeated", swap(`"kind":"file"`, `"kind":"file","kind":"file"`), "request-invalid", "kind"},
		{"NaN", swap(`"paths"`, `"x":NaN,"paths"`), "request-invalid", "x"},
		{"trailing", goodRequest + "x", "request-invalid", ""},
		{"unknown", swap(`"owner"`, `"colour":1,"owner"`), "request-invalid", "colour"},
		{"unknown inside", swap(`"mode":"public"`, `"mode":"public","x":1`), "request-invalid", "network.x"},
		{"version number", swap(`"1.0"`, `1.0`), "request-invalid", "schema_version"},
		{"other version", swap(`"1.0"`, `"2.0"`), "request-invalid", "schema_version"},
		{"blob", swap(`"kind":"file"`, `"kind":"blob"`), "not-supported", "kind"},
		{"api version", swap(`2026-10-01`, `2026-05-01-preview`), "request-invalid", "api_version"},
		{"mode", swap(`"extraction_mode":"minimal"`, `"extraction_mode":"maximal"`), "request-invalid", "extraction_mode"},
		{"tier", swap(`basic`, `s3hd`), "request-invalid", "service_tier"},
		{"endpoint http", swap(`https://demo`, `http://demo`), "endpoint-invalid", "endpoint"},
		{"endpoint path", swap(`windows.net"`, `windows.net/x"`), "endpoint-invalid", "endpoint"},
		{"endpoint elsewhere", swap(`demo.search.windows.net`, `demo.example.com`), "endpoint-invalid", "endpoint"},
		{"no name", swap(`"name":"manuals"`, `"name":""`), "name-invalid", "name"},
		{"owner", swap(`team@x`, `team x`), "request-invalid", "owner"},
		{"no paths", swap(`["guide.txt","sub/b.md"]`, `[]`), "request-invalid", "paths"},
		{"too many paths", swap(`"sub/b.md"`, `"sub/b.md"`+strings.Repeat(`,"x"`, 199)), "request-invalid", "paths"},
		{"same path", swap(`"sub/b.md"`, `"guide.txt"`), "request-invalid", "paths[1]"},
		{"dotdot", swap(`sub/b.md`, `../b.md`), "local-path-invalid", "paths[1]"},
		{"backslash", swap(`sub/b.md`, `sub\\b.md`), "local-path-invalid", "paths[1]"},
		{"colon", swap(`sub/b.md`, `c:b.md`), "local-path-invalid", "paths[1]"},
		{"line break", swap(`sub/b.md`, `sub\nb.md`), "local-path-invalid", "paths[1]"},
		{"absolute", swap(`sub/b.md`, `/sub/b.md`), "local-path-invalid", "paths[1]"},
		{"credential", swap(`sub/b.md`, `.aws/b.md`), "credential-file-forbidden", "paths[1]"},
		{"private key", swap(`sub/b.md`, `b.pem`), "credential-file-forbidden", "paths[1]"},
		{"metadata of none", swap(`"metadata":{"guide.txt"`, `"metadata":{"other.txt"`), "request-invalid", "metadata"},
		{"metadata reserved", swap(`"lang"`, `"ecluseOwner"`), "request-invalid", "metadata.guide.txt.ecluseOwner"},
		{"metadata key", swap(`"lang"`, `"la ng"`), "request-invalid", "metadata.guide.txt"},
		{"metadata type", swap(`"lang":"en"`, `"lang":1`), "request-invalid", "metadata.guide.txt.lang"},
		{"network", swap(`"mode":"public"`, `"mode":"open"`), "request-invalid", "network.mode"},
		{"model address", swap(`https://ai`, `http://ai`), "request-invalid", "vectorization.resource_uri"},
		{"secret", swap(`"owner"`, `"api_key":"x","owner"`), "secret-input-forbidden", "api_key"},
		{"secret inside", swap(`"model_name"`, `"Access-Token":"x","model_name"`), "secret-input-forbidden", "vectorization.Access-Token"},
		{"secret metadata", swap(`"lang"`, `"password"`), "secret-input-forbidden", "metadata.guide.txt.password"},
		{"connection string", swap(`"owner"`, `"connectionString":"AccountKey=x","owner"`), "secret-input-forbidden", "connectionString"},
		{"two components", swap(`"owner"`, `"connectionString":"ResourceId=/subscriptions/1/a;AccountKey=x","owner"`), "secret-input-forbidden", "connectionString"},
		{"resource id only", swap(`"owner"`, `"connectionString":"ResourceId=/subscriptions/1/a/b;","owner"`), "request-invalid", "connectionString"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan.ParseRequest([]byte(tt.data))
			if r := refusal(t, err); r.Code != tt.code || r.Field != tt.field {
				t.Errorf("%s %q (%s), want %s %q", r.Code, r.Field, r.Message, tt.code, tt.field)
			}
		})
	}
}

func samplePlan() *plan.Plan {
	records := []plan.File{{
		Path: "guide.txt", Size: 5, ModTime: "1700000000123456789", SHA256: strings.Repeat("ab", 32), MediaType: "text/plain",
		Metadata: map[string]string{"lang": "en"},
	}}
	return &plan.Plan{
		Kind: plan.KindFile, Action: plan.ActionCreate, Endpoint: "https://demo.search.windows.net", APIVersion: "2026-10-01",
		ServiceTier: "basic", Owner: "team@x",
		Source: plan.Source{
			Name: "manuals", URL: "https://demo.search.windows.net/knowledgesources('manuals')?api-version=2026-10-01",
			Definition: map[string]any{"name": "manuals", "kind": "file"},
		},
		Files:           plan.Files{LocalRoot: "/srv/docs", Digest: plan.Digest(records), Records: records},
		InventoryDigest: plan.Digest([]any{}),
	}
}

// The envelope: what New writes, Parse reads; Approve flips the confirmation and nothing else.
func TestEnvelope(t *testing.T) {
	p := samplePlan()
	data, err := plan.New(p)
	if err != nil {
		t.Fatal(err)
	}
	e, err := plan.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if e.Approval.Confirmed || e.File.Source.Name != "manuals" || e.Fingerprint() != plan.Digest(p) {
		t.Fatalf("read as %+v", e)
	}
	approved, err := e.Approve()
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Parse(approved)
	if err != nil || !again.Approval.Confirmed || again.Fingerprint() != e.Fingerprint() {
		t.Fatalf("approved: %+v, %v", again, err)
	}
	back := strings.Replace(string(approved), `"confirmed": true`, `"confirmed": false`, 1)
	if plan.Digest(json.RawMessage(back)) != plan.Digest(json.RawMessage(data)) {
		t.Error("Approve changed more than the confirmation")
	}
}

// The fingerprint is over the canonical form: order and white space do not matter, any value does.
// A plan with a fresh fingerprint is still held to every rule.
func TestEnvelopeRefuses(t *testing.T) {
	sealed := func(change func(*plan.Plan)) string {
		p := samplePlan()
		change(p)
		data, err := plan.New(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	good := sealed(func(*plan.Plan) {})
	records := func(change func(*plan.File)) string {
		return sealed(func(p *plan.Plan) {
			change(&p.Files.Records[0])
			p.Files.Digest = plan.Digest(p.Files.Records)
		})
	}
	for _, tt := range []struct{ name, data, code, field string }{
		{"value changed", strings.Replace(good, "team@x", "team@y", 1), "approval-fingerprint-mismatch", "approval.fingerprint"},
		{"number for text", strings.Replace(good, `"schema_version": "1.0"`, `"schema_version": 1`, 1), "envelope-invalid", "schema_version"},
		{"unknown in plan", strings.Replace(good, `"owner"`, `"x": 1, "owner"`, 1), "envelope-invalid", "plan.x"},
		{"unknown in approval", strings.Replace(good, `"confirmed"`, `"by": "me", "confirmed"`, 1), "envelope-invalid", "approval.by"},
		{"confirmed as text", strings.Replace(good, `"confirmed": false`, `"confirmed": "false"`, 1), "envelope-invalid", "approval.confirmed"},
		{"fingerprint form", strings.Replace(good, `"sha256:`, `"sha256:X`, 1), "envelope-invalid", ""},
		{"trailing", good + "{}", "envelope-invalid", ""},
		{"secret", strings.Replace(good, `"owner"`, `"api_key": "k", "owner"`, 1), "secret-input-forbidden", "plan.api_key"},
		{"other kind", sealed(func(p *plan.Plan) { p.Kind = "azureBlob" }), "not-supported", "plan.kind"},
		{"action", sealed(func(p *plan.Plan) { p.Action = "delete" }), "envelope-invalid", "plan.action"},
		{"update without ETag", sealed(func(p *plan.Plan) { p.Action = plan.ActionUpdate }), "envelope-invalid", "plan.source.etag"},
		{"other name", sealed(func(p *plan.Plan) { p.Source.Definition["name"] = "x" }), "envelope-invalid", "plan.source.definition"},
		{"files digest", sealed(func(p *plan.Plan) { p.Files.Digest = plan.Digest("x") }), "envelope-invalid", "plan.files.digest"},
		{"other URL", sealed(func(p *plan.Plan) { p.Source.URL += "&x=1" }), "envelope-invalid", "plan.source.url"},
		{"other endpoint", sealed(func(p *plan.Plan) { p.Endpoint = "https://evil.example.com" }), "endpoint-invalid", "plan.endpoint"},
		{"size", records(func(f *plan.File) { f.Size = 51 << 20 }), "file-size-invalid", "plan.files.records[0].size"},
		{"time", records(func(f *plan.File) { f.ModTime = "007" }), "envelope-invalid", "plan.files.records[0].mtime_ns"},
		{"digest", records(func(f *plan.File) { f.SHA256 = "AB" }), "envelope-invalid", "plan.files.records[0].sha256"},
		{"media type", records(func(f *plan.File) { f.MediaType = "text/html" }), "envelope-invalid", "plan.files.records[0].media_type"},
		{"path", records(func(f *plan.File) { f.Path = "../x" }), "envelope-invalid", "plan.files.records[0].media_type"},
		{"path outside", records(func(f *plan.File) { f.Path = "../x.txt" }), "local-path-invalid", "plan.files.records[0]"},
		{"marker", records(func(f *plan.File) { f.Metadata["ecluseOwner"] = "me" }), "request-invalid", "plan.files.records.metadata.guide.txt.ecluseOwner"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan.Parse([]byte(tt.data))
			if r := refusal(t, err); r.Code != tt.code || tt.field != "" && r.Field != tt.field {
				t.Errorf("%s %q (%s), want %s %q", r.Code, r.Field, r.Message, tt.code, tt.field)
			}
		})
	}
}

func TestContinuationEnvelope(t *testing.T) {
	c := &plan.Continuation{
		Kind: plan.KindContinue, Journal: "/srv/j", OriginalPlanDigest: plan.Digest(1), CreationAckDigest: plan.Digest(2), JournalDigest: plan.Digest(3),
		Eligible: []plan.Named{{Ordinal: 1, Path: "b"}, {Ordinal: 2, Path: "c"}},
	}
	data, _ := plan.New(c)
	e, err := plan.Parse(data)
	if err != nil || e.Continue == nil || e.File != nil {
		t.Fatalf("%+v, %v", e, err)
	}
	// S121: ordinals are whole, in range and unique.
	for name, eligible := range map[string][]plan.Named{
		"none": {}, "twice": {{Ordinal: 1}, {Ordinal: 1}}, "negative": {{Ordinal: -1}}, "out of range": {{Ordinal: 200}}, "unordered": {{Ordinal: 2}, {Ordinal: 1}},
	} {
		c.Eligible = eligible
		data, _ := plan.New(c)
		if _, err := plan.Parse(data); refusal(t, err).Code != plan.CodeEnvelope {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// S65
func TestMarkers(t *testing.T) {
	p := samplePlan()
	got := p.Markers(p.Files.Records[0])
	want := map[string]string{
		"ecluseSha256": strings.Repeat("ab", 32), "ecluseSizeBytes": "5", "ecluseInventory": p.Files.Digest, "ecluseOwner": "team@x",
		"ecluseSource": "manuals", "lang": "en",
	}
	if plan.Digest(got) != plan.Digest(want) {
		t.Errorf("markers %v", got)
	}
}

func FuzzParse(f *testing.F) {
	data, _ := plan.New(samplePlan())
	f.Add(data)
	f.Add([]byte(goodRequest))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = plan.ParseRequest(data)
		if e, err := plan.Parse(data); err == nil && e.File == nil && e.Continue == nil {
			t.Error("an envelope without a plan")
		}
	})
}
