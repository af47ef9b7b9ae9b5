package source_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/source"
)

const firstPage = endpoint + `/knowledgesources('manuals')/files?api-version=2026-10-01&pageSize=200`

// page is a page of the list of files with a link to another one.
func page(link string, records ...string) string {
	next := ""
	if link != "" {
		quoted, _ := json.Marshal(link)
		next = `,"@odata.nextLink":` + string(quoted)
	}
	return `{"status":200,"body":{"value":[` + strings.Join(records, ",") + `]` + next + `}}`
}

// S60-S63, S66: the first inventory of a creation, page by page.
func TestInventory(t *testing.T) {
	on := endpoint + `/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=`
	list := func(pages ...string) string {
		var all [][3]string
		for i, p := range pages {
			all = append(all, [3]string{"GET files", fmt.Sprint(i + 1), p})
		}
		return rules(all...)
	}
	stranger := `{"fileId":"x","fileName":"stranger.txt","fileSizeBytes":1,"errorMessage":null,"metadata":{}}`
	for _, tt := range []struct {
		name, script, code string
		sent               []string
	}{
		{"S60 two pages", list(page(on+"1"), page("")), "", []string{"GET files 200", "GET files 200"}},
		{"S63 429 on the second page", list(page(on+"1"), throttle2, page("")), "", []string{"GET files 200", "GET files 429", "GET files 200"}},
		{
			"S21 429 on two pages", list(page(on+"1"), throttle2, page(on+"2"), throttle2), "azure-http-error",
			[]string{"GET files 200", "GET files 429", "GET files 200", "GET files 429"},
		},
		{"S61 cycle", list(page(on+"1"), page(on+"1")), "continuation-url-invalid", []string{"GET files 200", "GET files 200"}},
		{"S61 first page again", list(page(firstPage)), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 other host", list(page("https://evil.example.com/knowledgesources('manuals')/files?api-version=2026-10-01")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 other path", list(page(endpoint + "/knowledgesources('other')/files?api-version=2026-10-01")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 other port", list(page("http://127.0.0.1:81/knowledgesources('manuals')/files?api-version=2026-10-01")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 two versions", list(page(on + "1&api-version=2026-10-01")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 other version", list(page(endpoint + "/knowledgesources('manuals')/files?api-version=2026-08-01-preview")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 user", list(page("http://u@127.0.0.1/knowledgesources('manuals')/files?api-version=2026-10-01")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S61 not ASCII", list(page(on + "é")), "continuation-url-invalid", []string{"GET files 200"}},
		{"S62 no list", list(`{"status":200,"body":{"value":{}}}`), "file-list-invalid", []string{"GET files 200"}},
		{"S62 no objects", list(`{"status":200,"body":{"value":[1]}}`), "file-list-invalid", []string{"GET files 200"}},
		{"S62 not 200", list(`{"status":206,"body":{"value":[]}}`), "file-list-invalid", []string{"GET files 206"}},
		{"S62 no JSON", list(`{"status":200,"body":"oops"}`), "response-invalid-json", []string{"GET files 200"}},
		{"S62 slow", list(page(on+"1"), `{"delay_ms":90000}`), "file-list-timeout", []string{"GET files 200", "GET files 0"}},
		{"S66 unknown name", list(page("", stranger)), "server-inventory-conflict", []string{"GET files 200"}},
		{"S66 twice", list(page("", strings.Replace(stranger, "stranger", "a", 1), strings.Replace(stranger, "stranger", "a", 1))), "file-record-conflict", []string{"GET files 200"}},
		{"S66 wrong markers", list(page("", strings.Replace(stranger, "stranger", "a", 1))), "file-record-conflict", []string{"GET files 200"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				out := w.created(tt.script)
				want := append([]string{"GET source 404", "PUT source 201", "GET source 200"}, tt.sent...)
				if tt.code == "" {
					is(t, out, source.StatusCompleted, "")
					want = append(want, "POST files 201", "GET files 200")
				} else {
					// a created source makes it partial, always (S89)
					is(t, out, source.StatusPartial, tt.code)
				}
				w.saw(want...)
			})
		})
	}
}

// S62: two hundred pages and no more; two hundred records and no more.
func TestInventoryLimits(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		var all [][3]string
		for i := range 250 {
			all = append(all, [3]string{"GET files", fmt.Sprint(i + 1), page(fmt.Sprintf("%s/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=%d", endpoint, i))})
		}
		out := w.created(rules(all...))
		is(t, out, source.StatusPartial, "file-list-limit-exceeded")
		if n := len(w.requests()); n != 3+200 {
			t.Errorf("%d requests", n)
		}
	})
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		var records []string
		for i := range 201 {
			records = append(records, fmt.Sprintf(`{"fileName":"f%d"}`, i))
		}
		is(t, w.created(rules([3]string{"GET files", "1", page("", records...)})), source.StatusPartial, "file-list-limit-exceeded")
	})
}

// S66, S67, S88: what the last inventory makes of files that were accepted. One that contradicts an
// acknowledgement takes the file out of those that are confirmed.
func TestFinalInventory(t *testing.T) {
	// proved is the record of a.txt as the service would show it, with something changed.
	for _, tt := range []struct {
		name   string
		change func(record map[string]any)
		file   string
		status string
		code   string
	}{
		{"as sent", func(map[string]any) {}, "accepted/confirmed", "completed", ""},
		{"S66 errorMessage", func(r map[string]any) { r["errorMessage"] = "parser broke" }, "accepted/failed", "partial", "file-verification-incomplete"},
		{"S67 other id", func(r map[string]any) { r["fileId"] = "another" }, "accepted/pending", "partial", "file-record-conflict"},
		{"S67 other id of an unsafe form", func(r map[string]any) { r["fileId"] = "an id, unsafe" }, "accepted/pending", "blocked", "file-record-conflict"},
		{"S67 no id in the list", func(r map[string]any) { delete(r, "fileId") }, "accepted/confirmed", "completed", ""},
		{"S65 other size", func(r map[string]any) { r["fileSizeBytes"] = 1 }, "accepted/pending", "partial", "file-record-conflict"},
		{"S65 missing marker", func(r map[string]any) { delete(r["metadata"].(map[string]any), "ecluseOwner") }, "accepted/pending", "partial", "file-record-conflict"},
		{"S65 other marker", func(r map[string]any) { r["metadata"].(map[string]any)["ecluseSource"] = "x" }, "accepted/pending", "partial", "file-record-conflict"},
		{"S65 caller metadata", func(r map[string]any) { r["metadata"].(map[string]any)["lang"] = "fr" }, "accepted/pending", "partial", "file-record-conflict"},
		{"gone", nil, "accepted/pending", "partial", "file-verification-incomplete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				w.extra = map[string]any{"metadata": map[string]any{"a.txt": map[string]any{"lang": "en"}}}
				// A first, honest run tells what the record looks like; the second, under script,
				// shows it changed.
				is(t, w.created(`[]`), source.StatusCompleted, "")
				state := w.emu.State().Sources[0].Files[0]
				record := map[string]any{"fileId": state.ID, "fileName": state.Name, "fileSizeBytes": state.Bytes, "errorMessage": nil, "metadata": map[string]any{}}
				for k, v := range state.Metadata {
					record["metadata"].(map[string]any)[k] = v
				}
				body := page("")
				if tt.change != nil {
					tt.change(record)
					data, _ := json.Marshal(record)
					body = page("", string(data))
				}
				w.script(rules([3]string{"GET files", "1", body}))
				envelope, err := json.Marshal(readJSON(t, w.path("journal/run.json"))["payload"].(map[string]any)["document"])
				if err != nil {
					t.Fatal(err)
				}
				out := w.tool().Verify(t.Context(), envelope, w.path("journal"))
				want := tt.status
				if want == "partial" && (tt.code == "file-record-conflict" || tt.file == "accepted/failed") {
					want = "blocked" // a look writes nothing, and no fate is open
				}
				is(t, out, want, tt.code)
				filesAre(t, out, tt.file)
			})
		})
	}
}

// S67, S88: the list at the end of a run counts, whatever was proved before: each file that it
// contradicts is no longer confirmed, not only the first.
func TestListContradictsProof(t *testing.T) {
	wrong := func(name, id string) string {
		return `{"fileId":"` + id + `","fileName":"` + name + `","fileSizeBytes":1,"errorMessage":null,"metadata":{}}`
	}
	for _, tt := range []struct {
		name   string
		script [][3]string
		code   string
		files  []string
	}{
		{
			"two files are not as approved",
			[][3]string{{"GET files", "2", page("", wrong("a.txt", "x"), wrong("c.txt", "y"))}},
			"file-record-conflict",
			[]string{"accepted/pending", "accepted/pending", "accepted/pending"},
		},
		{
			"one is listed twice",
			[][3]string{{"GET files", "2", page("", wrong("b.txt", "x"), wrong("b.txt", "y"))}},
			"file-record-conflict",
			[]string{"accepted/pending", "accepted/pending", "accepted/pending"},
		},
		{
			"a file that was throttled and found has gone",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"2"},"store":true}`}, {"GET files", "3", page("")}},
			"file-verification-incomplete",
			[]string{"rejected/failed", "accepted/pending", "accepted/pending"},
		},
		{
			"a file that was throttled and found is another",
			[][3]string{{"POST files", "1", `{"status":429,"headers":{"Retry-After":"2"},"store":true}`}, {"GET files", "3", page("", wrong("a.txt", "x"))}},
			"file-record-conflict",
			[]string{"rejected/failed", "accepted/pending", "accepted/pending"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				out := w.created(rules(tt.script...))
				is(t, out, source.StatusPartial, tt.code)
				filesAre(t, out, tt.files...)
				if n := out.FileBatch.Counts; n.Confirmed != 0 || n.Ingested != 0 {
					t.Errorf("counts %+v", n)
				}
			})
		})
	}
}

// S62: a list may cost 200 requests, the repeated one included, and no 201st is sent.
func TestInventoryRequests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pages int // the last has no link
		code  string
		sent  int
	}{
		{"199 pages and one 429", 199, "", 200},
		{"200 pages and one 429", 200, "file-list-limit-exceeded", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				all := [][3]string{{"GET files", "1", `{"status":429,"headers":{"Retry-After":"1"}}`}}
				for i := range tt.pages {
					link := fmt.Sprintf("%s/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=%d", endpoint, i)
					if i == tt.pages-1 {
						link = ""
					}
					all = append(all, [3]string{"GET files", fmt.Sprint(i + 2), page(link)})
				}
				out := w.created(rules(append(all, [3]string{"POST files", "1", `{"status":400}`})...))
				code := tt.code
				if code == "" {
					code = "azure-http-error" // of the upload, which ends the run
				}
				is(t, out, source.StatusPartial, code)
				lists := 0
				for _, r := range w.requests() {
					if strings.HasPrefix(r, "GET files") {
						lists++
					}
				}
				if lists != tt.sent {
					t.Errorf("%d requests for the list, want %d", lists, tt.sent)
				}
				if tt.code != "" && !strings.Contains(out.Message, "200 requests") {
					t.Errorf("message %q", out.Message)
				}
			})
		})
	}
}

// S62, S81: the preflight of a repetition may read the source and 200 pages.
func TestPreflightRequests(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		all := [][3]string{{"POST files", "1", throttle2}}
		for i := range 200 {
			link := fmt.Sprintf("%s/knowledgesources('manuals')/files?api-version=2026-10-01&$skiptoken=%d", endpoint, i)
			if i == 199 {
				link = ""
			}
			all = append(all, [3]string{"GET files", fmt.Sprint(i + 2), page(link)})
		}
		is(t, w.created(rules(all...)), source.StatusCompleted, "")
	})
}
