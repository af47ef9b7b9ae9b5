package source_test

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/source"
)

// The first five requests of every creation: look, write, read back, list.
var opening = []string{"GET source 404", "PUT source 201", "GET source 200", "GET files 200"}

func after(more ...string) []string { return append(append([]string{}, opening...), more...) }

// S50, S54, S71, S72, S79, S88: the plain run.
func TestCreate(t *testing.T) {
	inWorld(t, three, func(t *testing.T, w *world) {
		out := w.created(`[]`)
		is(t, out, source.StatusCompleted, "")
		w.saw(after("POST files 201", "POST files 201", "POST files 201", "GET files 200")...)
		filesAre(t, out, "accepted/confirmed", "accepted/confirmed", "accepted/confirmed")
		if n := out.FileBatch.Counts; n.Ingested != 3 || n.Accepted != 3 || n.Total != 3 {
			t.Errorf("counts %+v", n)
		}
	})
}

// S77, each row: what the service answers to the second of three files, what the run makes of it,
// and exactly what is sent afterwards.
func TestAnswerTable(t *testing.T) {
	record := func(more string) string {
		return `{"fileId":"f-1","fileName":"b.txt","fileSizeBytes":16,"prefix":"","parsingMode":"text","extractionMode":"minimal"` + more + `}`
	}
	for _, tt := range []struct {
		name, act    string
		status, code string
		second       string   // state of the second file
		sent         []string // after the first POST
		third        string
	}{
		{
			"201 body proves file", `{"delay_ms":1}`, "completed", "", "accepted/confirmed",
			[]string{"POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"200 body proves file", `{"status":200,"store":true}`, "completed", "", "accepted/confirmed",
			[]string{"POST files 200", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"201 status only", `{"status":201,"store":true,"body":""}`, "completed", "", "accepted/confirmed",
			[]string{"POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"201 status only, and not there", `{"status":201,"store":false,"body":""}`, "partial", "file-verification-incomplete", "accepted/pending",
			[]string{"POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"201 partial body", `{"status":201,"store":false,"body":{"fileId":"kept-1"}}`, "partial", "file-verification-incomplete", "accepted/pending",
			[]string{"POST files 201", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{
			"201 errorMessage", `{"status":201,"store":true,"body":` + record(`,"errorMessage":"no text"`) + `}`, "partial", "upload-metadata-unverified",
			"accepted/pending",
			[]string{"POST files 201"},
			"not_attempted/",
		},
		{
			"201 other name", `{"status":201,"store":true,"body":{"fileId":"f-1","fileName":"x.txt"}}`, "partial", "upload-metadata-unverified",
			"accepted/pending",
			[]string{"POST files 201"},
			"not_attempted/",
		},
		{
			"201 broken body", `{"status":201,"store":true,"reset":"after-headers"}`, "partial", "response-read-failed",
			"accepted/pending",
			[]string{"POST files 201"},
			"not_attempted/",
		},
		{
			"201 no JSON", `{"status":201,"store":true,"body":"<html>"}`, "partial", "response-invalid-json",
			"accepted/pending",
			[]string{"POST files 201"},
			"not_attempted/",
		},
		{
			"201 late body", `{"status":201,"store":true,"trickle_ms":20000}`, "partial", "response-deadline-exceeded",
			"accepted/pending",
			[]string{"POST files 201"},
			"not_attempted/",
		},
		{
			"415", `{"status":415}`, "partial", "azure-http-error", "rejected/failed",
			[]string{"POST files 415", "POST files 201", "GET files 200"},
			"accepted/confirmed",
		},
		{"408", `{"status":408}`, "partial", "azure-http-error", "unverified/", []string{"POST files 408", "GET files 200"}, "not_attempted/"},
		{"409", `{"status":409}`, "partial", "azure-http-error", "unverified/", []string{"POST files 409", "GET files 200"}, "not_attempted/"},
		{"500", `{"status":500}`, "partial", "azure-http-error", "unverified/", []string{"POST files 500", "GET files 200"}, "not_attempted/"},
		{
			"504, stored", `{"status":504,"store":true}`, "partial", "azure-http-error", "unverified/confirmed",
			[]string{"POST files 504", "GET files 200"},
			"not_attempted/",
		},
		{
			"no answer", `{"reset":"before-headers"}`, "partial", "azure-response-ambiguous", "unverified/",
			[]string{"POST files 0", "GET files 200"},
			"not_attempted/",
		},
		{
			"no answer, stored", `{"reset":"before-headers","store":true}`, "partial", "azure-response-ambiguous", "unverified/confirmed",
			[]string{"POST files 0", "GET files 200"},
			"not_attempted/",
		},
		{
			"no answer in 180 s", `{"delay_ms":300000,"store":true}`, "partial", "azure-response-ambiguous", "unverified/confirmed",
			[]string{"POST files 0", "GET files 200"},
			"not_attempted/",
		},
		{"400", `{"status":400}`, "partial", "azure-http-error", "rejected/failed", []string{"POST files 400"}, "not_attempted/"},
		{"401", `{"status":401}`, "partial", "azure-http-error", "rejected/failed", []string{"POST files 401"}, "not_attempted/"},
		{"403", `{"status":403}`, "partial", "azure-http-error", "rejected/failed", []string{"POST files 403"}, "not_attempted/"},
		{"413", `{"status":413}`, "partial", "azure-http-error", "rejected/failed", []string{"POST files 413"}, "not_attempted/"},
		{
			"202", `{"status":202,"store":true}`, "partial", "azure-http-error", "unverified/confirmed",
			[]string{"POST files 202", "GET files 200"},
			"not_attempted/",
		},
		{"204", `{"status":204,"store":false}`, "partial", "azure-http-error", "unverified/", []string{"POST files 204", "GET files 200"}, "not_attempted/"},
		{
			"307", `{"status":307,"headers":{"Location":"http://127.0.0.1/elsewhere"}}`, "partial", "azure-http-error", "unverified/",
			[]string{"POST files 307", "GET files 200"},
			"not_attempted/",
		}, // S49: never followed
		{
			"409 quota", `{"status":409,"body":{"error":{"code":"FileLimitReached","message":"full"}}}`, "partial", "quota-exhausted", "unverified/",
			[]string{"POST files 409", "GET files 200"},
			"not_attempted/",
		}, // S78
		{
			"429 quota", `{"status":429,"headers":{"x-ms-error-code":"QuotaExceeded","Retry-After":"1"}}`, "partial", "quota-exhausted", "rejected/failed",
			[]string{"POST files 429"},
			"not_attempted/",
		}, // S78: no wait, no retry
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				out := w.created(`[{"match":{"method":"POST","path":"` + filesPath + `","nth":2},"act":` + tt.act + `}]`)
				is(t, out, tt.status, tt.code)
				filesAre(t, out, "accepted/confirmed", tt.second, tt.third)
				w.saw(after(append([]string{"POST files 201"}, tt.sent...)...)...)
				notTwice(t, w)
			})
		})
	}
}

// notTwice: no content was posted more often than once, unless a received 429 allowed it.
func notTwice(t *testing.T, w *world) {
	t.Helper()
	throttled := map[string]bool{}
	count := map[string]int{}
	for _, r := range w.emu.Requests() {
		if r.Method != "POST" || r.BodyPartial {
			continue
		}
		if count[r.BodySHA256]++; count[r.BodySHA256] > 1 && !throttled[r.BodySHA256] {
			t.Errorf("a file was posted again after an answer that was no 429")
		}
		throttled[r.BodySHA256] = r.Answer != nil && r.Answer.Status == 429
	}
}
