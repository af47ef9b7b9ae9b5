package source_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/source"
)

// Everything that can be refused here is refused before a token is asked for and before anything is
// sent (S41, S42, S68-S70, S145).
func TestPlanRefusesBeforeAuthentication(t *testing.T) {
	for _, tt := range []struct {
		name, code, field string
		spoil             func(w *world)
	}{
		{"unknown field", "request-invalid", "colour", func(w *world) { w.extra = map[string]any{"colour": "red"} }},
		{"secret", "secret-input-forbidden", "api_key", func(w *world) { w.extra = map[string]any{"api_key": "k"} }},
		{"blob", "not-supported", "kind", func(w *world) { w.extra = map[string]any{"kind": "blob"} }},
		{"endpoint", "endpoint-invalid", "endpoint", func(w *world) { w.extra = map[string]any{"endpoint": "https://x.example.com"} }},
		{"loopback without --emulator", "endpoint-invalid", "endpoint", func(w *world) { w.opts.Emulator = false }},
		{"name", "name-invalid", "name", func(w *world) { w.extra = map[string]any{"name": strings.Repeat("n", 129)} }},
		{"root", "local-root-invalid", "local_root", func(w *world) { w.extra = map[string]any{"local_root": w.path("nowhere")} }},
		{"link", "inventory-unreadable", "paths", func(w *world) {
			_ = os.Symlink("a.txt", w.path("docs/link.txt"))
			w.paths = []string{"link.txt"}
		}},
		{"empty file", "file-size-invalid", "paths", func(w *world) { w.write("a.txt", "") }},
		{"large file", "file-size-invalid", "paths", func(w *world) { _ = os.Truncate(w.path("docs/a.txt"), 50<<20+1) }},
		{"absent file", "inventory-unreadable", "paths", func(w *world) { w.paths = []string{"b.txt"} }},
		{"credential", "credential-file-forbidden", "paths[0]", func(w *world) { w.paths = []string{".env"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				tt.spoil(w)
				envelope, out := w.tool().Plan(t.Context(), w.request())
				is(t, out, source.StatusBlocked, tt.code)
				if out.Field != tt.field || envelope != nil {
					t.Errorf("field %q, envelope %s", out.Field, envelope)
				}
				w.saw()
				if n := w.tokens.Load(); n != 0 {
					t.Errorf("%d tokens were asked for", n)
				}
				if strings.Contains(out.Message, w.dir) { // S146
					t.Errorf("the message names the local root: %s", out.Message)
				}
			})
		})
	}
}

// What a plan says about a source that stands already. Planning only reads, and a 429 there fails
// at once, but for the list of an exact reuse (S38).
func TestPlanAgainstExisting(t *testing.T) {
	for _, tt := range []struct {
		name         string
		spoil        func(w *world)
		script       [][3]string
		status, code string
		sent         []string
	}{
		{"exact reuse", func(*world) {}, nil, "reused", "", []string{"GET source 200", "GET files 200", "GET status 200"}},
		{
			"S38 reuse, 429 on the list", func(*world) {},
			[][3]string{{"GET files", "1", throttle2}},
			"reused", "",
			[]string{"GET source 200", "GET files 429", "GET files 200", "GET status 200"},
		},
		{"S38 429 on the source", func(*world) {}, [][3]string{{"GET source", "1", throttle2}}, "blocked", "azure-http-error", []string{"GET source 429"}},
		{
			"S73 a new file", func(w *world) { w.write("b.txt", "b"); w.paths = append(w.paths, "b.txt") }, nil, "blocked", "file-record-conflict",
			[]string{"GET source 200", "GET files 200"},
		}, // the inventory marker of the old file is another one
		{
			"S73 no files", func(*world) {},
			[][3]string{{"GET files", "1", page("")}},
			"blocked", "reused-source-upload-forbidden",
			[]string{"GET source 200", "GET files 200", "GET status 200"},
		},
		{
			"S66 a record twice", func(*world) {},
			[][3]string{{"GET files", "1", page("", `{"fileName":"a.txt","fileId":"1"}`, `{"fileName":"a.txt","fileId":"2"}`)}},
			"blocked", "duplicate-file-record",
			[]string{"GET source 200", "GET files 200"},
		},
		{
			"S66 a stranger", func(*world) {},
			[][3]string{{"GET files", "1", page("", `{"fileName":"z.txt","fileId":"1"}`)}},
			"blocked", "server-inventory-conflict",
			[]string{"GET source 200", "GET files 200"},
		},
		{"drift", func(w *world) { w.extra = map[string]any{"extraction_mode": "standard"} }, nil, "blocked", "definition-drift", []string{"GET source 200"}},
		{
			"another owner", func(w *world) { w.extra = map[string]any{"owner": "else@x"} }, nil, "blocked", "file-record-conflict",
			[]string{"GET source 200", "GET files 200"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				is(t, w.created(`[]`), source.StatusCompleted, "")
				w.requests()
				tt.spoil(w)
				w.script(rules(tt.script...))
				envelope, out := w.tool().Plan(t.Context(), w.request())
				is(t, out, tt.status, tt.code)
				w.saw(tt.sent...)
				if envelope != nil {
					t.Error("there is nothing to approve")
				}
			})
		})
	}
}

// S78: a plan that the source has no room for is refused before anything is written, where the
// service tells.
func TestPlanCapacity(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		is(t, w.created(`[]`), source.StatusCompleted, "")
		w.script(`[{"match":{"method":"GET","path":"/status"},"act":{"status":200,"body":{"kind":"file","synchronizationStatus":"active","fileCapacity":{"maxFileCount":0,"remainingFileCount":0,"maxFileSizeBytes":9}}}}]`)
		_, out := w.tool().Plan(t.Context(), w.request())
		is(t, out, source.StatusBlocked, "quota-exhausted")
		if !strings.Contains(out.Message, "0 files") {
			t.Errorf("the limit is not named: %s", out.Message)
		}
	})
}

// An approval: only the confirmation changes; a plan that was edited, or approved by somebody
// else's fingerprint, sends nothing and asks for no token.
func TestApplyRefusesBeforeAuthentication(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		spoil      func(w *world, approved string) string
	}{
		{"not approved", "approval-missing", func(_ *world, e string) string {
			return strings.Replace(e, `"confirmed": true`, `"confirmed": false`, 1)
		}},
		{"edited", "approval-fingerprint-mismatch", func(_ *world, e string) string { return strings.Replace(e, "team@x", "team@y", 1) }},
		{"extra field", "envelope-invalid", func(_ *world, e string) string { return strings.Replace(e, `"owner"`, `"x": 1, "owner"`, 1) }},
		{"trailing", "envelope-invalid", func(_ *world, e string) string { return e + "x" }},
		{"S70 drift", "inventory-drift", func(w *world, e string) string { w.write("a.txt", "content of b.txt"); return e }},
		{"S70 removed", "inventory-unreadable", func(w *world, e string) string { _ = os.Remove(w.path("docs/a.txt")); return e }},
		{"S99 journal not empty", "file-upload-journal-exists", func(w *world, e string) string {
			_ = os.MkdirAll(w.path("journal"), 0o700)
			_ = os.WriteFile(w.path("journal/x"), nil, 0o600)
			return e
		}},
		{"S93 journal open to others", "private-directory-invalid", func(w *world, e string) string {
			_ = os.MkdirAll(w.path("journal"), 0o700)
			_ = os.Chmod(w.path("journal"), 0o755)
			return e
		}},
		{"S93 receipts behind a link", "private-directory-invalid", func(w *world, e string) string {
			_ = os.MkdirAll(w.path("real"), 0o700)
			_ = os.Symlink("real", w.path("receipts"))
			return e
		}},
		{"loopback without --emulator", "endpoint-invalid", func(w *world, e string) string { w.opts.Emulator = false; return e }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				envelope := w.planned()
				w.requests()
				w.tokens.Store(0)
				out := w.apply([]byte(tt.spoil(w, string(envelope))))
				is(t, out, source.StatusBlocked, tt.code)
				w.saw()
				if n := w.tokens.Load(); n != 0 {
					t.Errorf("%d tokens were asked for", n)
				}
				if len(out.WritesPerformed) != 0 {
					t.Errorf("writes %v", out.WritesPerformed)
				}
			})
		})
	}
}

// S99
func TestApplyPlaces(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		envelope := w.planned()
		w.requests()
		w.tokens.Store(0)
		for _, tt := range []struct {
			places source.Places
			code   string
		}{
			{source.Places{Journal: w.path("j")}, "file-creation-receipt-required"},
			{source.Places{Receipts: w.path("r")}, "file-upload-receipt-required"},
			{source.Places{Journal: w.path("j"), Receipts: w.path("j")}, "file-receipt-directory-conflict"},
			{source.Places{Journal: w.path("j"), Receipts: w.path("j/r")}, "file-receipt-directory-conflict"},
			{source.Places{Journal: w.path("r/j"), Receipts: w.path("r")}, "file-receipt-directory-conflict"},
			{source.Places{Journal: "j", Receipts: w.path("r")}, "private-directory-invalid"},
		} {
			is(t, w.tool().Apply(t.Context(), envelope, tt.places), source.StatusBlocked, tt.code)
		}
		w.saw()
		if n := w.tokens.Load(); n != 0 {
			t.Errorf("%d tokens were asked for", n)
		}
	})
}

// S145, S146: nothing that a run prints or keeps holds the token, file content, a text of the
// service, or, in the outcome, the local root.
func TestNothingLeaks(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.token = "token-that-must-not-leak"
		w.write("a.txt", "content-that-must-not-leak")
		out := w.created(rules([3]string{"POST files", "2", `{"status":400,"headers":{"X-Note":"header-that-must-not-leak"},"body":{"error":{"code":"Bad","message":"text-that-must-not-leak"}}}`},
			[3]string{"GET source", "2", `{"status":429,"headers":{"Retry-After":"1 must-not-leak"}}`}))
		is(t, out, source.StatusPartial, "azure-http-error")
		var b strings.Builder
		document, err := out.Document()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(document)
		if strings.Contains(b.String(), w.dir) {
			t.Error("the outcome names a local folder")
		}
		for _, dir := range []string{"journal", "receipts"} {
			files, _ := os.ReadDir(w.path(dir))
			for _, f := range files {
				data, _ := os.ReadFile(w.path(dir + "/" + f.Name()))
				b.Write(data)
			}
		}
		if i := strings.Index(b.String(), "must-not-leak"); i >= 0 {
			t.Errorf("leaked: …%s", b.String()[max(0, i-60):i+14])
		}
	})
}
