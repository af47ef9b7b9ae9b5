package source_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/journal"
)

const throttle60 = `{"status":429,"headers":{"Retry-After":"60"}}`

// S87, S106, S107, S110, tc-029, tc-084, tc-086: a restriction of 60 seconds stops the run at once,
// is kept by every later run whatever was approved since, costs not even a token request, and is
// over on the second that it names.
func TestRestrictionOutlivesTheRun(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		start := time.Now()
		out := w.created(rules([3]string{"POST files", "1", throttle60}))
		is(t, out, source.StatusPartial, "azure-http-error")
		backoffIs(t, out, journal.Waiting)
		if time.Since(start) > time.Second {
			t.Errorf("stopped after %v", time.Since(start))
		}
		end := *out.FileBatch.Backoff.NotBeforeUTC
		if end != start.Unix()+60 && end != start.Unix()+61 {
			t.Errorf("not before %d, started %d", end, start.Unix())
		}
		w.requests()

		// A continuation that was planned and approved before could not be; so one is forged with a
		// fresh approval.
		w.tokens.Store(0)
		time.Sleep(20 * time.Second)
		envelope, out := w.resume()
		is(t, out, source.StatusWaiting, "file-upload-backoff-waiting")
		if left := *out.FileBatch.Backoff.SecondsRemaining; left < 39 || left > 41 || envelope != nil {
			t.Errorf("%d seconds left, envelope %s", left, envelope)
		}
		is(t, w.continued(w.approved(w.forged([]int{1, 2}))), source.StatusWaiting, "file-upload-backoff-waiting")
		is(t, w.tool().Verify(t.Context(), w.founding(), w.path("journal")), source.StatusWaiting, "file-upload-backoff-waiting")
		time.Sleep(time.Until(time.Unix(end, 0).Add(-time.Nanosecond)))
		_, out = w.resume()
		is(t, out, source.StatusWaiting, "file-upload-backoff-waiting")
		w.saw()
		if n := w.tokens.Load(); n != 0 {
			t.Errorf("%d tokens were asked for", n)
		}

		time.Sleep(time.Nanosecond) // now == not before is elapsed
		envelope, out = w.resume()
		is(t, out, source.StatusPlanned, "")
		backoffIs(t, out, journal.Elapsed)
		w.saw("GET source 200", "GET files 200")
		out = w.continued(w.approved(envelope))
		// S86, S124: the throttled file is never offered again
		is(t, out, source.StatusPartial, "file-verification-incomplete")
		filesAre(t, out, "rejected/failed", "accepted/confirmed", "accepted/confirmed")
		w.saw("GET source 200", "GET files 200", "POST files 201", "POST files 201", "GET files 200")
	})
}

// S108: a clock that was set back before the receipt of an answer makes the journal unresolved:
// nothing is sent, and only the clock can cure it.
func TestClockSetBack(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", throttle60}))
		w.requests()
		time.Sleep(2 * time.Hour)
		c := w.clock(nil)
		c.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
		w.opts.Clock = c
		_, out := w.resume()
		is(t, out, source.StatusBlocked, "file-upload-backoff-unresolved")
		if out.FileBatch.Backoff.Reason != "clock-before-last-receipt" {
			t.Errorf("%+v", out.FileBatch.Backoff)
		}
		w.saw()
		c.Now = time.Now
		w.opts.Clock = c
		_, out = w.resume()
		is(t, out, source.StatusPlanned, "")
	})
}

// A look that meets a restriction itself, and is too long to be waited for, is waiting as well:
// nothing was written, and it says until when.
func TestLookMeetsRestriction(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
		w.requests()
		w.script(rules([3]string{"GET source", "1", throttle60}))
		_, out := w.resume()
		is(t, out, source.StatusWaiting, "azure-http-error")
		backoffIs(t, out, journal.Waiting)
		w.saw("GET source 429")
		_, out = w.resume()
		is(t, out, source.StatusWaiting, "file-upload-backoff-waiting")
		w.saw()
	})
}

// S111: the restriction is the journal's, not that of one address: a throttled list keeps uploads
// back too.
func TestRestrictionIsJournalWide(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(rules([3]string{"GET files", "1", throttle60}))
		is(t, out, source.StatusPartial, "azure-http-error")
		filesAre(t, out, "not_attempted/", "not_attempted/", "not_attempted/")
		w.requests()
		_, out = w.resume()
		is(t, out, source.StatusWaiting, "file-upload-backoff-waiting")
		w.saw()
		time.Sleep(61 * time.Second)
		envelope, _ := w.resume()
		is(t, w.continued(w.approved(envelope)), source.StatusCompleted, "")
	})
}

// S117-S126, S120: what is eligible after each way in which a run can end.
func TestResumeEligibility(t *testing.T) {
	for _, tt := range []struct {
		name, act  string
		resume     string // status of the resume
		code       string
		first      string
		third      string
		then       string // status of the continuation, "" when there is none
		afterwards string
	}{
		{"S124 timeout, not stored", `{"reset":"before-headers"}`, "planned", "", "unverified/", "not_attempted/", "partial", "unverified/"},
		{"S124 timeout, stored", `{"reset":"before-headers","store":true}`, "planned", "", "unverified/confirmed", "not_attempted/", "completed", "unverified/confirmed"},
		{"S124 409", `{"status":409}`, "planned", "", "unverified/", "not_attempted/", "partial", "unverified/"},
		{"S124 500", `{"status":500}`, "planned", "", "unverified/", "not_attempted/", "partial", "unverified/"},
		{"400", `{"status":400}`, "planned", "", "rejected/failed", "not_attempted/", "partial", "rejected/failed"},
		{"429 too long", throttle60, "planned", "", "rejected/failed", "not_attempted/", "partial", "rejected/failed"},
		{"accepted, unread", `{"status":201,"store":true,"body":"<"}`, "planned", "", "accepted/confirmed", "not_attempted/", "completed", "accepted/confirmed"},
		{"415, others done", `{"status":415}`, "blocked", "file-upload-nothing-eligible", "rejected/failed", "accepted/confirmed", "", ""},
		{"nothing wrong", `{"delay_ms":1}`, "completed", "", "accepted/confirmed", "accepted/confirmed", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				w.created(rules([3]string{"POST files", "1", tt.act}))
				time.Sleep(2 * time.Minute)
				w.script(`[]`)
				w.requests()
				envelope, out := w.resume()
				is(t, out, tt.resume, tt.code)
				w.saw("GET source 200", "GET files 200")
				filesAre(t, out, tt.first, tt.third, tt.third)
				if (envelope != nil) != (tt.then != "") {
					t.Fatalf("envelope %s", envelope)
				}
				if envelope == nil {
					return
				}
				out = w.continued(w.approved(envelope))
				if out.Status != tt.then {
					t.Errorf("continuation %s %s", out.Status, out.Code)
				}
				filesAre(t, out, tt.afterwards, "accepted/confirmed", "accepted/confirmed")
				// S123
				w.saw("GET source 200", "GET files 200", "POST files 201", "POST files 201", "GET files 200")
				// S125
				if r := out.ResourcesRemaining; r.Created[0] != "manuals" {
					t.Errorf("resources %+v", r)
				}
				for _, x := range out.WritesPerformed {
					if x.Name != "b.txt" && x.Name != "c.txt" {
						t.Errorf("writes %+v", out.WritesPerformed)
					}
				}
				notTwice(t, w)
			})
		})
	}
}

// S126: a continuation may use the one repetition of its own.
func TestContinuationQueueRetry(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
		envelope, _ := w.resume()
		w.requests()
		w.script(rules([3]string{"POST files", "1", throttle2}))
		out := w.continued(w.approved(envelope))
		filesAre(t, out, "rejected/failed", "accepted/confirmed", "accepted/confirmed")
		w.saw("GET source 200", "GET files 200", "POST files 429", "GET source 200", "GET files 200", "POST files 201", "POST files 201", "GET files 200")
	})
}

// founding is the approved envelope that the run keeps.
func (w *world) founding() []byte {
	w.t.Helper()
	document, err := json.Marshal(readJSON(w.t, w.path("journal/run.json"))["payload"].(map[string]any)["document"])
	if err != nil {
		w.t.Fatal(err)
	}
	return document
}

// S119, S121, S122: what makes a continuation that was approved void, in the order in which it is
// looked at, and what has been sent by then.
func TestContinuationRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		sent       []string
		spoil      func(w *world, envelope []byte) []byte
	}{
		{"S121 not approved", "file-upload-approval-missing", nil, func(_ *world, e []byte) []byte {
			return bytes.Replace(e, []byte(`"confirmed": true`), []byte(`"confirmed": false`), 1)
		}},
		{"edited", "approval-fingerprint-mismatch", nil, func(_ *world, e []byte) []byte { return bytes.Replace(e, []byte("team@x"), []byte("team@y"), 1) }},
		{"S121 attempted ordinal", "file-upload-replay-forbidden", nil, func(w *world, _ []byte) []byte { return w.approved(w.forged([]int{0})) }},
		{"S121 ordinal out of range", "file-upload-plan-drift", nil, func(w *world, _ []byte) []byte { return w.approved(w.forged([]int{7})) }},
		{"S121 journal grew", "file-upload-plan-drift", nil, func(w *world, e []byte) []byte {
			w.script(rules([3]string{"GET files", "1", `{"status":429,"headers":{"Retry-After":"0"}}`}))
			w.tool().Verify(w.t.Context(), w.founding(), w.path("journal"))
			w.requests()
			w.tokens.Store(0)
			time.Sleep(2 * time.Second)
			return e
		}},
		{"S122 drift of a file to be sent", "inventory-drift", nil, func(w *world, e []byte) []byte { w.write("c.txt", "other"); return e }},
		{"S119 source drift", "file-upload-source-drift", []string{"GET source 200"}, func(w *world, e []byte) []byte {
			w.script(rules([3]string{"GET source", "1", `{"status":200,"body":` + otherSource + `}`}))
			return e
		}},
		{"S119 source gone", "file-upload-source-drift", []string{"GET source 404"}, func(w *world, e []byte) []byte {
			w.script(rules([3]string{"GET source", "1", `{"status":404}`}))
			return e
		}},
		{"S119 other account", "file-upload-context-drift", nil, func(w *world, e []byte) []byte {
			w.token = "e30.eyJ0aWQiOiJvdGhlciIsIm9pZCI6Im8ifQ.x" // {"tid":"other","oid":"o"}
			return e
		}},
		{"other journal", "file-upload-provenance-missing", nil, func(w *world, e []byte) []byte {
			_ = os.Remove(w.path("journal/source-ack.json"))
			return e
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
				envelope, _ := w.resume()
				approved := w.approved(envelope)
				w.requests()
				w.script(`[]`)
				w.tokens.Store(0)
				out := w.continued(tt.spoil(w, approved))
				is(t, out, source.StatusBlocked, tt.code)
				w.saw(tt.sent...)
				if tt.sent == nil && tt.name != "S119 other account" && w.tokens.Load() != 0 {
					t.Error("a token was asked for")
				}
			})
		})
	}
}

// forged is a continuation of the journal as it is, with ordinals of the caller's choice.
func (w *world) forged(ordinals []int) []byte {
	w.t.Helper()
	run := readJSON(w.t, w.path("journal/run.json"))
	ack := readJSON(w.t, w.path("journal/source-ack.json"))
	p := run["payload"].(map[string]any)["document"].(map[string]any)["plan"].(map[string]any)
	r, err := journal.Read(w.path("journal"), layout())
	if err != nil {
		w.t.Fatal(err)
	}
	var eligible []any
	for _, n := range ordinals {
		name := "x"
		if n < len(w.paths) {
			name = w.paths[n]
		}
		eligible = append(eligible, map[string]any{"ordinal": n, "path": name})
	}
	s := p["source"].(map[string]any)
	digest := readJSON(w.t, w.path("journal/attempt-0000.json"))["payload"].(map[string]any)["original_plan_digest"]
	content := map[string]any{
		"kind": "file-upload-continuation", "journal": w.path("journal"), "endpoint": p["endpoint"], "api_version": p["api_version"], "owner": p["owner"],
		"source_name": s["name"], "source_url": s["url"], "original_plan_digest": digest, "creation_ack_digest": ack["integrity"],
		"journal_digest": r.Digest(), "eligible": eligible,
	}
	fingerprint, err := strictjson.Digest(content)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"schema_version": "1.0", "plan": content, "approval": map[string]any{"confirmed": false, "fingerprint": fingerprint}})
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// S122: a file that is confirmed already may change; that is a warning and no more.
func TestDriftOfConfirmedFileIsAWarning(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "2", `{"status":400}`}))
		w.write("a.txt", "changed after it was confirmed")
		envelope, out := w.resume()
		is(t, out, source.StatusPlanned, "")
		warned := false
		for _, x := range out.Warnings {
			warned = warned || x.Code == "inventory-drift" && strings.Contains(x.Message, "a.txt")
		}
		if !warned {
			t.Errorf("warnings %+v", out.Warnings)
		}
		out = w.continued(w.approved(envelope))
		filesAre(t, out, "accepted/confirmed", "rejected/failed", "accepted/confirmed")
	})
}

// S152: a second run on the same journal is refused at once.
func TestJournalIsLocked(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
		j, err := journal.Open(w.path("journal"), layout(), journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.requests()
		_, out := w.resume()
		is(t, out, source.StatusBlocked, "journal-locked")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		_, out = w.resume()
		is(t, out, source.StatusPlanned, "")
	})
}

// S152, S98: two folders, or a folder copied elsewhere: a continuation goes to the journal that it
// names and to no other.
func TestContinuationNamesItsJournal(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
		envelope, _ := w.resume()
		out := w.tool().Apply(t.Context(), w.approved(envelope), source.Places{Journal: filepath.Join(w.dir, "elsewhere")})
		is(t, out, source.StatusBlocked, "file-upload-input-invalid")
	})
}

// S48: between the files of a long batch an expiring token is renewed for the same principal; a
// renewal that fails, or gives another principal, stops before the next request, and the file that
// was to come counts as never attempted.
func TestTokenBetweenFiles(t *testing.T) {
	const slow = `[{"match":{"method":"POST"},"act":{"delay_ms":100000}}]`
	// {"tid":"t","oid":"o"}, {"tid":"t","oid":"p"}
	const mine, others = "e30.eyJ0aWQiOiJ0Iiwib2lkIjoibyJ9.x", "e30.eyJ0aWQiOiJ0Iiwib2lkIjoicCJ9.x"
	for _, tt := range []struct {
		name   string
		second string // the token that a renewal gives
		code   string
		posts  int
	}{
		{"same principal", mine, "", 3}, {"another principal", others, "azure-authentication-failed", 1}, {"none", "", "azure-authentication-failed", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				envelope := w.planned()
				w.requests()
				w.script(slow)
				w.token, w.life = mine, 6*time.Minute
				w.tokens.Store(0)
				w.renewed = tt.second
				out := w.apply(envelope)
				posts := 0
				for _, r := range w.requests() {
					if r == "POST files 201" {
						posts++
					}
				}
				if out.Code != tt.code || posts != tt.posts {
					t.Errorf("%s %s, %d posts, want %q and %d", out.Status, out.Code, posts, tt.code, tt.posts)
				}
				if tt.code != "" {
					filesAre(t, out, "accepted/confirmed", "not_attempted/", "not_attempted/")
				}
			})
		})
	}
}
