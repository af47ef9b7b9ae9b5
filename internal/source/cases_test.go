package source_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/journal"
)

// rw-044, R104, S80, S87: a wait that the service names in milliseconds only, or beside a shorter
// Retry-After, is kept: the upload is repeated after it, or not at all.
func TestWaitInMilliseconds(t *testing.T) {
	for _, tt := range []struct {
		name, headers string
		least         time.Duration
		status        string
		remaining     int64 // of the restriction, where the run stops
	}{
		{"x-ms-retry-after-ms alone", `{"x-ms-retry-after-ms":"20000"}`, 20 * time.Second, source.StatusCompleted, 0},
		{"retry-after-ms alone", `{"retry-after-ms":"20000"}`, 20 * time.Second, source.StatusCompleted, 0},
		{"beside a shorter Retry-After", `{"Retry-After":"2","x-ms-retry-after-ms":"20000"}`, 20 * time.Second, source.StatusCompleted, 0},
		{"beside a longer Retry-After", `{"Retry-After":"20","x-ms-retry-after-ms":"2000"}`, 20 * time.Second, source.StatusCompleted, 0},
		{"both names", `{"retry-after-ms":"2000","x-ms-retry-after-ms":"20000"}`, 20 * time.Second, source.StatusCompleted, 0},
		{"a fraction of a second", `{"Retry-After":"2","retry-after-ms":"2001"}`, 3 * time.Second, source.StatusCompleted, 0},
		{"zero beside no Retry-After", `{"retry-after-ms":"0"}`, time.Second, source.StatusCompleted, 0},
		{"malformed beside a good one", `{"Retry-After":"5","retry-after-ms":"soon"}`, 5 * time.Second, source.StatusCompleted, 0},
		{"more than 30 s", `{"x-ms-retry-after-ms":"30001"}`, 0, source.StatusPartial, 31},
		{"more than 30 s beside a short one", `{"Retry-After":"1","x-ms-retry-after-ms":"60000"}`, 0, source.StatusPartial, 60},
		{"endless", `{"Retry-After":"1","retry-after-ms":"99999999999999999999"}`, 0, source.StatusPartial, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				out := w.created(rules([3]string{"POST files", "1", `{"status":429,"headers":` + tt.headers + `}`}))
				var posts []time.Time
				for _, r := range w.emu.Requests() {
					if r.Method == "POST" {
						posts = append(posts, r.Time)
					}
				}
				if out.Status != tt.status {
					t.Fatalf("%s %s", out.Status, out.Code)
				}
				if tt.least == 0 {
					if len(posts) != 1 {
						t.Errorf("%d uploads", len(posts))
					}
					b := out.FileBatch.Backoff
					if tt.remaining < 0 {
						backoffIs(t, out, journal.Unresolved)
					} else if b.SecondsRemaining == nil || *b.SecondsRemaining < tt.remaining-1 || *b.SecondsRemaining > tt.remaining+1 {
						t.Errorf("backoff %+v", b)
					}
					return
				}
				if len(posts) != 2 || posts[1].Sub(posts[0]) < tt.least || posts[1].Sub(posts[0]) > tt.least+3*time.Second {
					t.Errorf("uploads at %v", posts)
				}
			})
		})
	}
}

// rw-043, S17: an epoch as seconds is kept as it was sent: the journal waits, until decades from
// now, and nothing is repeated. (How a person ends it is in internal/source/review.)
func TestEpochAsSeconds(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		epoch := time.Now().Add(30 * time.Second).Unix()
		out := w.created(rules([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"` + strconv.FormatInt(epoch, 10) + `"}}`}))
		is(t, out, source.StatusPartial, "azure-http-error")
		w.saw("GET source 404", "PUT source 201", "GET source 200", "GET files 200", "POST files 429")
		backoffIs(t, out, journal.Waiting)
		if left := *out.FileBatch.Backoff.SecondsRemaining; left < epoch-1 {
			t.Errorf("%d seconds left", left)
		}
		time.Sleep(time.Hour)
		_, out = w.resume()
		is(t, out, source.StatusWaiting, "file-upload-backoff-waiting")
	})
}

// rw-045, S82: a write that was performed although the answer was 429 is found before it is
// repeated: one file.
func TestStoredAndThrottled(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"1"},"store":true}`}))
		is(t, out, source.StatusCompleted, "")
		filesAre(t, out, "rejected/confirmed")
		if files := w.emu.State().Sources[0].Files; len(files) != 1 {
			t.Errorf("files %+v", files)
		}
		if !warned(out, "upload-throttled", "not sent again") || warned(out, "upload-throttled", "sent once more") {
			t.Errorf("warnings %+v", out.Warnings)
		}
	})
}

// rw-047: a name is the same on the service, whatever stands in it, or it is refused before
// anything is sent.
func TestOddNames(t *testing.T) {
	for i, tt := range []struct {
		name    string
		refused string
	}{
		{"100%.txt", ""},
		{"%41.txt", ""},
		{"%2e%2e%2fa.txt", ""},
		{"a+b.txt", ""},
		{"a#b.txt", ""},
		{"a b.txt", ""},
		{" a.txt", ""},
		{`say "hi".txt`, ""},
		{"it's.txt", ""},
		{"a&b=c;d.txt", ""},
		{"a?b.txt", ""},
		{"ünïcödé ®.txt", ""},
		{"gpj.\u202eexe.txt", ""},
		{"a;filename=b.txt", ""},
		{"two\nlines.txt", "local-path-invalid"},
		{"a\r.txt", "local-path-invalid"},
		{"bell\a.txt", "local-path-invalid"},
		{"del\x7f.txt", "local-path-invalid"},
		{`back\slash.txt`, "local-path-invalid"},
		{"a:b.txt", "local-path-invalid"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inWorld(t, []string{tt.name}, func(t *testing.T, w *world) {
				envelope, out := w.tool().Plan(t.Context(), w.request())
				if tt.refused != "" {
					is(t, out, source.StatusBlocked, tt.refused)
					w.saw()
					return
				}
				is(t, out, source.StatusPlanned, "")
				out = w.apply(w.approved(envelope))
				is(t, out, source.StatusCompleted, "")
				if files := w.emu.State().Sources[0].Files; len(files) != 1 || files[0].Name != tt.name {
					t.Errorf("%q is %+v on the service", tt.name, files)
				}
				document, err := out.Document()
				if err != nil || strings.ContainsRune(string(document), '\u202e') {
					t.Errorf("%v: %s", err, document)
				}
			})
		})
	}
}

// rw-047: the same of the source's own name.
func TestOddSourceNames(t *testing.T) {
	for i, name := range []string{"100%", "a+b", "a#b", "a b", "it's", "a/b", "a?b", "ü®", `"quoted"`, "two\nlines", "nul\x00", strings.Repeat("n", 129), ""} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				w.extra = map[string]any{"name": name}
				envelope, out := w.tool().Plan(t.Context(), w.request())
				if envelope == nil {
					is(t, out, source.StatusBlocked, "name-invalid")
					w.saw()
					return
				}
				is(t, w.apply(w.approved(envelope)), source.StatusCompleted, "")
				if s := w.emu.State().Sources; len(s) != 1 || s[0].Name != name {
					t.Errorf("%q is %+v on the service", name, s)
				}
			})
		})
	}
}

// rw-048, S65: metadata arrives as it was approved, or the plan refuses it.
func TestOddMetadata(t *testing.T) {
	values := []string{"Handbuch®", "Übersicht für Löwen", "標題", "a\u202eb", `"quoted" \ and 'more'`, "", "100% + #", "tab\tinside", "two\nlines", "nul\x00"}
	for i, value := range values {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				w.extra = map[string]any{"metadata": map[string]any{"a.txt": map[string]any{"title": value}}}
				envelope, out := w.tool().Plan(t.Context(), w.request())
				if slices.Contains([]string{"tab\tinside", "two\nlines", "nul\x00"}, value) {
					is(t, out, source.StatusBlocked, "request-invalid")
					w.saw()
					return
				}
				is(t, w.apply(w.approved(envelope)), source.StatusCompleted, "")
				if files := w.emu.State().Sources[0].Files; len(files) != 1 || files[0].Metadata["title"] != value {
					t.Errorf("%q is %+v on the service", value, files)
				}
			})
		})
	}
}
