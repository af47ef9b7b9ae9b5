package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// owned creates the source with its file and gives what proves it, and forgets the requests of it.
func (w *world) owned() (envelope []byte, ack *record.SourceAck) {
	w.t.Helper()
	envelope = w.planned()
	is(w.t, w.apply(envelope), source.StatusCompleted, "")
	w.requests()
	r, err := journal.Read(w.path("journal"), layout())
	if err != nil {
		w.t.Fatal(err)
	}
	entry, _ := r.Entry(record.SourceAckName)
	ack = &record.SourceAck{}
	if err := entry.Decode(ack); err != nil {
		w.t.Fatal(err)
	}
	return envelope, ack
}

func (w *world) deletion() (source.Deletion, string) {
	w.t.Helper()
	envelope, ack := w.owned()
	d, err := source.NewDeletion(envelope, ack)
	if err != nil {
		w.t.Fatal(err)
	}
	tag, _ := ack.ETag()
	return d, tag
}

func written(writes []source.Write) string {
	var all []string
	for _, x := range writes {
		all = append(all, x.Action+" "+x.Name)
	}
	return strings.Join(all, ",")
}

// body is the source as the service may show it, without an ETag, and shown the answer with one in
// its header.
func body(mode string) string {
	return `{"name":"manuals","kind":"file","encryptionKey":null,"fileParameters":{"ingestionParameters":{"contentExtractionMode":"` + mode + `"}}}`
}

func shown(mode, etag string) string {
	return `{"status":200,"headers":{"ETag":"` + etag + `"},"body":` + body(mode) + `}`
}

const (
	unsure  = "delete-source-unverified manuals"
	deleted = "delete-source manuals"
	owner   = "manuals"
)

// S59, S38: what becomes of the DELETE, exactly what is sent, and what is said to be written and
// left. No row sends a second DELETE or waits.
func TestDelete(t *testing.T) {
	for _, tt := range []struct {
		name               string
		script             [][3]string
		status, code       string
		sent               string // statuses of GET, DELETE, GET
		writes, unverified string
		created, warning   string
		stands             bool // on the service afterwards
	}{
		{name: "204", status: "completed", sent: "200 204 404", writes: deleted},
		{
			name: "200", script: [][3]string{{"DELETE source", "1", `{"status":200,"store":true}`}},
			status: "completed", sent: "200 200 404", writes: deleted,
		},
		{
			name: "200 with a broken body", script: [][3]string{{"DELETE source", "1", `{"status":200,"store":true,"reset":"after-headers"}`}},
			status: "completed", sent: "200 200 404", writes: deleted,
		},
		{name: "absent", script: [][3]string{{"GET source", "1", `{"status":404}`}}, status: "skipped", sent: "404", stands: true},
		{name: "S38 first read 429", script: [][3]string{{"GET source", "1", throttle2}}, status: "blocked", code: "azure-http-error", sent: "429", stands: true},
		{name: "first read 503", script: [][3]string{{"GET source", "1", `{"status":503}`}}, status: "blocked", code: "azure-http-error", sent: "503", stands: true},
		{
			name: "S52 as created, in other words", script: [][3]string{{"GET source", "1", shown("minimal", `{{etag}}`)}},
			status: "completed", sent: "200 204 404", writes: deleted,
		},
		{
			name: "another definition", script: [][3]string{{"GET source", "1", shown("standard", `{{etag}}`)}},
			status: "blocked", code: "definition-drift", sent: "200", stands: true,
		},
		{
			name: "another ETag", script: [][3]string{{"GET source", "1", shown("minimal", `\"other\"`)}},
			status: "blocked", code: "definition-drift", sent: "200", stands: true,
		},
		{
			name: "no ETag", script: [][3]string{{"GET source", "1", `{"status":200,"headers":{"ETag":null},"body":` + body("minimal") + `}`}},
			status: "blocked", code: "definition-drift", sent: "200", stands: true,
		},
		{
			name: "S53 conflicting ETags", script: [][3]string{{"GET source", "1", `{"headers":{"ETag":["\"a\"","\"b\""]}}`}},
			status: "blocked", code: "etag-conflict", sent: "200", stands: true,
		},
		{
			name: "204 and not done", script: [][3]string{{"DELETE source", "1", `{"status":204}`}},
			status: "partial", code: "absence-unverified", sent: "200 204 200", writes: deleted, unverified: unsure, stands: true,
		},
		{
			name: "204, readback 503", script: [][3]string{{"GET source", "2", `{"status":503}`}},
			status: "partial", code: "absence-unverified", sent: "200 204 503", writes: deleted, unverified: unsure, warning: "azure-http-error",
		},
		{
			name: "S38 204, readback 429", script: [][3]string{{"GET source", "2", throttle2}},
			status: "partial", code: "absence-unverified", sent: "200 204 429", writes: deleted, unverified: unsure, warning: "azure-http-error",
		},
		{
			name: "204, readback without answer", script: [][3]string{{"GET source", "2", `{"reset":"before-headers"}`}},
			status: "partial", code: "absence-unverified", sent: "200 204 0", writes: deleted, unverified: unsure, warning: "azure-response-ambiguous",
		},
		{name: "404", script: [][3]string{{"DELETE source", "1", `{"status":404,"store":true}`}}, status: "skipped", sent: "200 404"},
		{
			name: "412", script: [][3]string{{"DELETE source", "1", `{"status":412}`}},
			status: "blocked", code: "definition-drift", sent: "200 412", stands: true,
		},
		{
			name: "409", script: [][3]string{{"DELETE source", "1", `{"status":409}`}},
			status: "blocked", code: "azure-http-error", sent: "200 409", created: owner, stands: true,
		},
		{
			name: "403", script: [][3]string{{"DELETE source", "1", `{"status":403}`}},
			status: "blocked", code: "azure-http-error", sent: "200 403", created: owner, stands: true,
		},
		{
			name: "429 and done", script: [][3]string{{"DELETE source", "1", `{"status":429,"headers":{"Retry-After":"20"},"store":true}`}},
			status: "completed", sent: "200 429 404", writes: deleted, warning: "azure-http-error",
		},
		{
			name: "429 and not done", script: [][3]string{{"DELETE source", "1", `{"status":429,"headers":{"Retry-After":"20"}}`}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 429 200", writes: unsure, unverified: unsure, stands: true,
		},
		{
			name: "429 twice", script: [][3]string{{"DELETE source", "1", throttle2}, {"GET source", "2", throttle2}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 429 429", writes: unsure, unverified: unsure, warning: "azure-http-error", stands: true,
		},
		{
			name: "408 and done", script: [][3]string{{"DELETE source", "1", `{"status":408,"store":true}`}},
			status: "completed", sent: "200 408 404", writes: deleted, warning: "azure-http-error",
		},
		{
			name: "500 and done", script: [][3]string{{"DELETE source", "1", `{"status":500,"store":true}`}},
			status: "completed", sent: "200 500 404", writes: deleted, warning: "azure-http-error",
		},
		{
			name: "503 and not done", script: [][3]string{{"DELETE source", "1", `{"status":503}`}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 503 200", writes: unsure, unverified: unsure, stands: true,
		},
		{
			name: "no answer and done", script: [][3]string{{"DELETE source", "1", `{"reset":"before-headers","store":true}`}},
			status: "completed", sent: "200 0 404", writes: deleted, warning: "azure-response-ambiguous",
		},
		{
			name: "no answer and not done", script: [][3]string{{"DELETE source", "1", `{"reset":"before-headers"}`}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 0 200", writes: unsure, unverified: unsure, stands: true,
		},
		{
			name: "no answer twice", script: [][3]string{{"DELETE source", "1", `{"reset":"before-headers","store":true}`}, {"GET source", "2", `{"reset":"before-headers"}`}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 0 0", writes: unsure, unverified: unsure, warning: "azure-response-ambiguous",
		},
		{
			name: "S49 redirect", script: [][3]string{{"DELETE source", "1", `{"status":307,"headers":{"Location":"http://127.0.0.1/knowledgesources"}}`}},
			status: "partial", code: "delete-outcome-ambiguous", sent: "200 307 200", writes: unsure, unverified: unsure, stands: true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
				d, tag := w.deletion()
				script := rules(tt.script...)
				w.script(strings.ReplaceAll(script, "{{etag}}", strings.ReplaceAll(tag, `"`, `\"`)))
				start, first := time.Now(), len(w.emu.Requests())
				out := w.tool().Delete(t.Context(), d)
				is(t, out, tt.status, tt.code)
				var want []string
				for i, status := range strings.Fields(tt.sent) {
					want = append(want, []string{"GET", "DELETE", "GET"}[i]+" source "+status)
				}
				w.saw(want...)
				if waited := time.Since(start); waited != 0 {
					t.Errorf("waited %v", waited)
				}
				for _, r := range w.emu.Requests()[first:] {
					if got := r.Headers.Values("If-Match"); r.Method == "DELETE" && !slices.Equal(got, []string{tag}) {
						t.Errorf("If-Match %q, want %q", got, tag)
					}
				}
				left := out.ResourcesRemaining
				if written(out.WritesPerformed) != tt.writes || written(left.Unverified) != tt.unverified || strings.Join(left.Created, ",") != tt.created {
					t.Errorf("writes %v, remaining %+v", out.WritesPerformed, left)
				}
				var warnings []string
				for _, x := range out.Warnings {
					warnings = append(warnings, x.Code)
				}
				if strings.Join(warnings, ",") != tt.warning {
					t.Errorf("warnings %+v, want %q", out.Warnings, tt.warning)
				}
				w.script(`[]`)
				w.tool().Plan(t.Context(), w.request())
				if stands := w.requests()[0] == "GET source 200"; stands != tt.stands {
					t.Errorf("the source stands: %v, want %v", stands, tt.stands)
				}
			})
		})
	}
}

// S59: once deleted, the next deletion finds nothing to do and writes nothing.
func TestDeleteAgain(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		d, _ := w.deletion()
		is(t, w.tool().Delete(t.Context(), d), source.StatusCompleted, "")
		w.requests()
		out := w.tool().Delete(t.Context(), d)
		is(t, out, source.StatusSkipped, "")
		w.saw("GET source 404")
		if len(out.WritesPerformed) > 0 {
			t.Errorf("writes %v", out.WritesPerformed)
		}
	})
}

// S59: a signal after the DELETE went out leaves its fate open, and nothing more is sent.
func TestDeleteInterrupted(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		d, _ := w.deletion()
		w.script(rules([3]string{"DELETE source", "1", `{"delay_ms":5000}`}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out := w.tool().Delete(ctx, d)
		is(t, out, source.StatusPartial, "delete-outcome-ambiguous")
		if got := fmt.Sprint(len(w.requests()), " ", written(out.WritesPerformed)); got != "2 "+unsure {
			t.Errorf("requests and writes: %s", got)
		}
	})
}

// forgetful is a recorder that cannot record the end of a DELETE.
type forgetful struct{ search.Recorder }

func (f forgetful) End(o search.Outcome) error {
	return errors.Join(f.Recorder.End(o), map[bool]error{true: errors.New("the disk is full")}[o.Method == "DELETE"])
}

// S59, S104: when the end of the DELETE cannot be recorded nothing is sent after it, and it is not
// called done, skipped or refused.
func TestDeleteNotRecorded(t *testing.T) {
	for status, answer := range map[string]string{"204": `{"status":204,"store":true}`, "404": `{"status":404}`, "412": `{"status":412}`, "503": `{"status":503}`} {
		inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
			d, _ := w.deletion()
			w.script(rules([3]string{"DELETE source", "1", answer}))
			connect := w.opts.Connect
			w.opts.Connect = func(s search.Service, r search.Recorder) (*search.Client, error) { return connect(s, forgetful{r}) }
			out := w.tool().Delete(t.Context(), d)
			if out.Status != source.StatusPartial || out.BlockedAt != "local-persistence" || written(out.WritesPerformed) != unsure {
				t.Errorf("%s: %+v", status, out)
			}
			w.saw("GET source 200", "DELETE source "+status)
		})
	}
}

// S59, S130, S142: without proof of the creation and of what was created there is no deletion, and
// no request.
func TestDeleteNeedsProof(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		envelope, good := w.owned()
		tokens := w.tokens.Load()
		text := func(s string) *string { return &s }
		for _, tt := range []struct {
			name, code string
			change     func(a *record.SourceAck) *record.SourceAck
		}{
			{"sound", "", func(a *record.SourceAck) *record.SourceAck { return a }},
			{"none", "ownership-unproven", func(*record.SourceAck) *record.SourceAck { return nil }},
			{"another plan", "ownership-unproven", func(a *record.SourceAck) *record.SourceAck {
				a.OriginalPlanDigest = a.OriginalPlanDigest[:70] + "x"
				return a
			}},
			{"another source", "ownership-unproven", func(a *record.SourceAck) *record.SourceAck { a.SourceURL += "x"; return a }},
			{"refused", "ownership-unproven", func(a *record.SourceAck) *record.SourceAck { a.Acknowledgement.Status = 429; return a }},
			{"unsafe id", "ownership-unproven", func(a *record.SourceAck) *record.SourceAck { a.Acknowledgement.RequestID = "[withheld]"; return a }},
			{"no ETag", "creation-version-unproven", func(a *record.SourceAck) *record.SourceAck {
				a.Acknowledgement.ETagEvidence = record.Evidence{Headers: []string{}}
				return a
			}},
			{"blank ETag", "creation-version-unproven", func(a *record.SourceAck) *record.SourceAck { a.Acknowledgement.ETagEvidence.Body = text(" "); return a }},
			{"conflicting ETags", "creation-version-unproven", func(a *record.SourceAck) *record.SourceAck {
				a.Acknowledgement.ETagEvidence.Body = text(`"else"`)
				return a
			}},
		} {
			ack := *good
			d, err := source.NewDeletion(envelope, tt.change(&ack))
			if tt.code == "" {
				if err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
				continue
			}
			if err == nil || source.RefusedBy("cleanup", err).Code != tt.code || d != (source.Deletion{}) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.code)
			}
			is(t, w.tool().Delete(t.Context(), d), source.StatusBlocked, "ownership-unproven")
		}
		revoked := bytes.Replace(envelope, []byte(`"confirmed": true`), []byte(`"confirmed": false`), 1)
		if _, err := source.NewDeletion(revoked, good); err == nil || source.RefusedBy("cleanup", err).Code != "approval-missing" {
			t.Errorf("not approved: %v", err)
		}
		w.saw()
		if w.tokens.Load() != tokens {
			t.Error("a token was asked for")
		}
	})
}

// S59, S142: an update gives no authority, whatever acknowledgement is shown with it; nor does a
// real service's tool without --emulator reach loopback.
func TestDeleteIsForCreations(t *testing.T) {
	inWorld(t, []string{"a.txt"}, func(t *testing.T, w *world) {
		envelope, ack := w.owned()
		d, err := source.NewDeletion(envelope, ack)
		if err != nil {
			t.Fatal(err)
		}
		w.extra = map[string]any{"description": "the manuals", "allow_update": true}
		update := w.planned()
		w.requests()
		own := *ack
		own.OriginalPlanDigest = readPlanDigest(t, update)
		if _, err := source.NewDeletion(update, &own); err == nil || source.RefusedBy("cleanup", err).Code != "ownership-unproven" {
			t.Errorf("an update: %v", err)
		}
		w.opts.Emulator = false
		is(t, w.tool().Delete(t.Context(), d), source.StatusBlocked, "endpoint-invalid")
		w.saw()
	})
}

func readPlanDigest(t *testing.T, envelope []byte) string {
	t.Helper()
	e, err := plan.Parse(envelope)
	if err != nil {
		t.Fatal(err)
	}
	return e.Digest()
}
