package source_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/source"
)

const otherSource = `{"name":"manuals","kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"standard"}},"@odata.etag":"\"other\""}`

// S50-S58, S34: what becomes of the PUT, and exactly what is sent.
func TestCreateReconciliation(t *testing.T) {
	for _, tt := range []struct {
		name         string
		script       [][3]string
		status, code string
		sent         []string
		writes       []string
	}{
		{
			"S50 200",
			[][3]string{{"PUT source", "1", `{"status":200,"store":true}`}},
			"completed", "",
			[]string{"GET source 404", "PUT source 200", "GET source 200", "GET files 200", "POST files 201", "GET files 200"},
			[]string{"create-source manuals", "upload a.txt"},
		},
		{
			"S57 400",
			[][3]string{{"PUT source", "1", `{"status":400}`}},
			"blocked", "azure-http-error",
			[]string{"GET source 404", "PUT source 400"},
			nil,
		},
		{
			"S57 412",
			[][3]string{{"PUT source", "1", `{"status":412}`}},
			"blocked", "azure-http-error",
			[]string{"GET source 404", "PUT source 412"},
			nil,
		},
		{
			"S57 409",
			[][3]string{{"PUT source", "1", `{"status":409}`}},
			"blocked", "azure-http-error",
			[]string{"GET source 404", "PUT source 409"},
			nil,
		},
		{
			"S55 503 absent",
			[][3]string{{"PUT source", "1", `{"status":503}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 503", "GET source 404"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S55 503 stored",
			[][3]string{{"PUT source", "1", `{"status":503,"store":true}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 503", "GET source 200"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S55 no answer, stored",
			[][3]string{{"PUT source", "1", `{"reset":"before-headers","store":true}`}},
			"partial", "azure-response-ambiguous",
			[]string{"GET source 404", "PUT source 0", "GET source 200"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S55 S34 429, stored",
			[][3]string{{"PUT source", "1", `{"status":429,"headers":{"Retry-After":"2"},"store":true}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 429", "GET source 200"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S55 429 then 429",
			[][3]string{{"PUT source", "1", throttle2}, {"GET source", "2", throttle2}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 429", "GET source 429"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S55 503 then 429",
			[][3]string{{"PUT source", "1", `{"status":503}`}, {"GET source", "2", throttle2}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 503", "GET source 429", "GET source 404"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S25 429 too long",
			[][3]string{{"PUT source", "1", `{"status":429,"headers":{"Retry-After":"60"}}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 429"},
			[]string{"create-source-unverified manuals"},
		},
		{
			"S54 readback fails",
			[][3]string{{"GET source", "2", `{"status":503}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 201", "GET source 503"},
			[]string{"create-source manuals"},
		},
		{
			"S34 readback 429 once",
			[][3]string{{"GET source", "2", throttle2}},
			"completed", "",
			[]string{"GET source 404", "PUT source 201", "GET source 429", "GET source 200", "GET files 200", "POST files 201", "GET files 200"},
			[]string{"create-source manuals", "upload a.txt"},
		},
		{
			"S29 readback 429 twice",
			[][3]string{{"GET source", "2", throttle2}, {"GET source", "3", throttle2}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 201", "GET source 429", "GET source 429"},
			[]string{"create-source manuals"},
		},
		{
			"S58 readback differs",
			[][3]string{{"GET source", "2", `{"status":200,"body":` + otherSource + `}`}},
			"partial", "readback-mismatch",
			[]string{"GET source 404", "PUT source 201", "GET source 200"},
			[]string{"create-source manuals"},
		},
		{
			"S58 readback absent",
			[][3]string{{"GET source", "2", `{"status":404}`}},
			"partial", "readback-mismatch",
			[]string{"GET source 404", "PUT source 201", "GET source 404"},
			[]string{"create-source manuals"},
		},
		{
			"S53 conflicting ETags",
			[][3]string{{"PUT source", "1", `{"status":201,"store":true,"headers":{"ETag":["\"a\"","\"b\""]}}`}},
			"partial", "file-upload-provenance-missing",
			[]string{"GET source 404", "PUT source 201", "GET source 200"},
			[]string{"create-source manuals"},
		},
		{
			"S36 unsafe request id",
			[][3]string{{"PUT source", "1", `{"status":201,"store":true,"headers":{"request-id":"no good"}}`}},
			"partial", "file-upload-provenance-missing",
			[]string{"GET source 404", "PUT source 201", "GET source 200"},
			[]string{"create-source manuals"},
		},
		{"S38 first read 429", [][3]string{{"GET source", "1", throttle2}}, "waiting", "azure-http-error", []string{"GET source 429"}, nil},
		{
			"appeared, equal",
			[][3]string{{"GET source", "1", `{"status":200,"body":{"name":"manuals","kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"minimal"}},"@odata.etag":"\"x\""}}`}},
			"blocked", "reused-source-upload-forbidden",
			[]string{"GET source 200"},
			nil,
		},
		{"appeared, other", [][3]string{{"GET source", "1", `{"status":200,"body":` + otherSource + `}`}}, "blocked", "definition-drift", []string{"GET source 200"}, nil},
		{
			"S39 S49 redirect of the PUT",
			[][3]string{{"PUT source", "1", `{"status":307,"headers":{"Location":"http://127.0.0.1/knowledgesources"}}`}},
			"partial", "azure-http-error",
			[]string{"GET source 404", "PUT source 307", "GET source 404"},
			[]string{"create-source-unverified manuals"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				out := w.created(rules(tt.script...))
				is(t, out, tt.status, tt.code)
				w.saw(tt.sent...)
				var writes []string
				for _, x := range out.WritesPerformed {
					writes = append(writes, x.Action+" "+x.Name)
				}
				if strings.Join(writes, ",") != strings.Join(tt.writes, ",") {
					t.Errorf("writes %v, want %v", writes, tt.writes)
				}
				stored := strings.Contains(tt.name, "S55") && strings.Contains(tt.name, "stored")
				if reused := len(out.ResourcesRemaining.Reused) > 0; reused != stored {
					t.Errorf("reused %v, want an observation: %v", out.ResourcesRemaining.Reused, stored)
				}
				if stored && len(out.ResourcesRemaining.Created) > 0 {
					t.Error("a source without acknowledgement is never owned")
				}
			})
		})
	}
}

// S54: the conditions of the PUT, and the acknowledgement's request id when something fails later.
func TestPutHeaders(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"GET source", "2", `{"status":500}`}))
		put := w.emu.Requests()[2]
		if put.Headers.Get("If-None-Match") != "*" || put.Headers.Get("Prefer") != "return=representation" || put.Headers.Get("If-Match") != "" {
			t.Errorf("headers %v", put.Headers)
		}
		found := false
		for _, warning := range out.Warnings {
			found = found || warning.Code == "write-acknowledged" && strings.Contains(warning.Message, put.ID)
		}
		if !found {
			t.Errorf("no warning names the acknowledgement %s: %+v", put.ID, out.Warnings)
		}
		names, _ := os.ReadDir(w.path("receipts"))
		if len(names) != 1 || !strings.HasPrefix(names[0].Name(), "source-create-") {
			t.Errorf("receipts %v", names)
		}
	})
}

// S50, S56, S73: an update replaces the definition under the approved ETag, sends no file, and may
// be completed by a readback.
func TestUpdate(t *testing.T) {
	for _, tt := range []struct {
		name         string
		script       [][3]string
		status, code string
		sent         []string
	}{
		{"plain", nil, "completed", "", []string{"GET source 200", "PUT source 200", "GET source 200", "GET files 200"}},
		{
			"S56 no answer, stored",
			[][3]string{{"PUT source", "1", `{"reset":"before-headers","store":true}`}},
			"completed", "",
			[]string{"GET source 200", "PUT source 0", "GET source 200", "GET files 200"},
		},
		{
			"S56 no answer, not stored",
			[][3]string{{"PUT source", "1", `{"reset":"before-headers"}`}},
			"partial", "azure-response-ambiguous",
			[]string{"GET source 200", "PUT source 0", "GET source 200"},
		},
		{"drift", [][3]string{{"GET source", "1", `{"status":200,"body":` + otherSource + `,"headers":{"ETag":"\"other\""}}`}}, "blocked", "definition-drift", []string{"GET source 200"}},
		{
			"S72 inventory drift",
			[][3]string{{"GET files", "1", `{"status":200,"body":{"value":[]}}`}},
			"partial", "server-inventory-drift",
			[]string{"GET source 200", "PUT source 200", "GET source 200", "GET files 200"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				is(t, w.created(`[]`), source.StatusCompleted, "")
				w.extra = map[string]any{"description": "the manuals"}
				if _, out := w.tool().Plan(t.Context(), w.request()); out.Code != "definition-drift" || out.Status != source.StatusBlocked {
					t.Fatalf("another definition without allow_update: %+v", out)
				}
				w.extra["allow_update"] = true
				envelope := w.planned()
				w.requests()
				w.script(rules(tt.script...))
				out := w.tool().Apply(t.Context(), envelope, source.Places{Journal: w.path("journal2"), Receipts: w.path("receipts")})
				is(t, out, tt.status, tt.code)
				w.saw(tt.sent...)
				if len(out.ResourcesRemaining.Created) > 0 {
					t.Errorf("an updated source is never owned: %+v", out.ResourcesRemaining)
				}
				if _, err := os.Stat(w.path("journal2/source-ack.json")); err == nil {
					t.Error("an update has no creation acknowledgement")
				}
			})
		})
	}
}

// S52: what makes no difference between two definitions.
func TestSameDefinition(t *testing.T) {
	same := `{"name":"manuals","kind":"file","@odata.context":"x","@odata.etag":"\"e\"","encryptionKey":null,"synchronizationStatus":"active",` +
		`"fileParameters":{"createdResources":{"index":"i"},"ingestionParameters":{"contentExtractionMode":"minimal","identity":null,"list":[],` +
		`"embeddingModel":{"kind":"azureOpenAI","azureOpenAIParameters":{"resourceUri":"https://ai.example.com","deploymentId":"d","modelName":"m","apiKey":"<redacted>"}}}}}`
	for name, body := range map[string]string{
		"same":    same,
		"slash":   strings.Replace(same, "example.com\"", "example.com/\"", 1),
		"model":   strings.Replace(same, `"m"`, `"n"`, 1),
		"mode":    strings.Replace(same, "minimal", "standard", 1),
		"slashes": strings.Replace(same, "example.com\"", "example.com//\"", 1),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				w.extra = map[string]any{"vectorization": map[string]any{"resource_uri": "https://ai.example.com/", "deployment_id": "d", "model_name": "m"}}
				out := w.created(rules([3]string{"GET source", "2", `{"status":200,"body":` + body + `,"headers":{"ETag":"\"e\""}}`},
					[3]string{"PUT source", "1", `{"status":201,"store":true,"body":` + same + `,"headers":{"ETag":"\"e\""}}`}))
				if name == "same" || name == "slash" {
					is(t, out, source.StatusCompleted, "")
				} else {
					is(t, out, source.StatusPartial, "readback-mismatch")
				}
			})
		})
	}
}

// S51, S101, S105: a read that could not be recorded is no absence, and nothing is sent after it.
func TestAbsenceNeedsItsRecord(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		w.opts.Disk = func(step, name string, call func() error) error {
			if step == "remove" {
				return os.ErrPermission
			}
			return call()
		}
		out := w.created(`[]`)
		is(t, out, source.StatusBlocked, "azure-http-error")
		if out.BlockedAt != "local-persistence" {
			t.Errorf("blocked at %q", out.BlockedAt)
		}
		w.saw("GET source 404")
	})
}
