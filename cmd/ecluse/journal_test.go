package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/source/review"
	"github.com/ecluse-gate/ecluse/journal"
)

// S151, tc-085: an operator's statement frees the journal of a killed run ten minutes after the
// review, for the files that were never attempted. The file whose upload was cut off stays
// unverified for ever, also when the service turns out to have the others.
func TestResolveFreesTheOthers(t *testing.T) {
	v := newVictim(t)
	must(t, v.emulator.SetScript(nil))
	v.killAt, v.phase = 6, "arrived" // the second upload: GET, PUT, GET, GET files, POST, POST
	v.run()
	dir := v.path("journal")
	killed := time.Now()
	report, err := review.Show(dir, killed)
	must(t, err)
	if report.Backoff.State != journal.Unresolved || len(report.Blocks) != 1 || report.Files[1].Upload != "unverified" || report.Files[0].Verification != "confirmed" {
		t.Fatalf("%+v", report)
	}

	statement, err := review.Plan(dir, journal.OutcomeNotApplied, false, killed)
	must(t, err)
	if _, err := review.Resolve(dir, statement, killed); code(err) != plan.CodeApproval {
		t.Errorf("unapproved: %v", err)
	}
	approved := approve(t, statement)
	if _, err := review.Resolve(v.path("elsewhere"), approved, killed); code(err) != review.CodeDrift {
		t.Errorf("another folder: %v", err)
	}
	status, err := review.Resolve(dir, approved, killed.Add(time.Minute))
	must(t, err)
	if status.State != journal.Waiting || *status.NotBeforeUTC < killed.Unix()+600 {
		t.Errorf("%+v", status)
	}
	if _, err := review.Resolve(dir, approved, killed.Add(time.Minute)); code(err) != review.CodeDrift {
		t.Errorf("twice: %v", err)
	}

	sent := len(v.emulator.Requests())
	if _, out := v.tool(killed.Add(9*time.Minute)).Resume(t.Context(), dir, ""); out.Status != source.StatusWaiting || len(v.emulator.Requests()) != sent {
		t.Errorf("too early: %s %s", out.Status, out.Code)
	}
	later := killed.Add(11 * time.Minute)
	envelope, out := v.tool(later).Resume(t.Context(), dir, "")
	if out.Status != source.StatusPlanned {
		t.Fatalf("%s %s %s", out.Status, out.Code, out.Message)
	}
	out = v.tool(later).Apply(t.Context(), approve(t, envelope), source.Places{})
	if out.Status != source.StatusPartial || out.FileBatch.Files[1].Upload != "unverified" || out.FileBatch.Files[2].Verification != "confirmed" {
		t.Errorf("%s %s %+v", out.Status, out.Code, out.FileBatch.Files)
	}
	if names := v.emulator.State().Sources[0].Files; len(names) != 2 {
		t.Errorf("the interrupted file was sent again: %+v", names)
	}
	v.once()
}

// S151: what a clock that was ahead recorded is ended by a statement of its own, which shows what
// it ends and is bound to it. Without it nothing else can be stated while the clock stands before
// an answer.
func TestResolveClock(t *testing.T) {
	v := newVictim(t)
	v.run()
	dir, before := v.path("journal"), time.Now().Add(-24*time.Hour)
	if _, err := review.Plan(dir, journal.OutcomeUnknown, false, before); code(err) != review.CodeClock {
		t.Errorf("%v", err)
	}
	if _, err := review.Plan(dir, journal.OutcomeUnknown, true, time.Now().Add(time.Hour)); code(err) != review.CodeNothing {
		t.Errorf("%v", err)
	}
	report, err := review.Show(dir, before)
	must(t, err)
	if report.Backoff.Reason != journal.ReasonRegression || len(report.Blocks) != 1 || !strings.Contains(report.Next, "--plan --end-wait") {
		t.Errorf("%+v", report)
	}
	statement, err := review.Plan(dir, journal.OutcomeUnknown, true, before)
	must(t, err)
	e, err := plan.Parse(statement)
	must(t, err)
	if words := e.Words(); !strings.Contains(words, "clock was wrong when the answer came") || !strings.Contains(words, "backoff-0000.json, of a POST") {
		t.Errorf("%s", words)
	}
	for what, cut := range map[string]func(*plan.Resolution){ // each needs the other
		"evidence": func(r *plan.Resolution) { r.Evidence = nil }, "restriction": func(r *plan.Resolution) { r.Request.Restriction = nil },
	} {
		short := *e.Resolve
		cut(&short)
		envelope, err := plan.New(&short)
		must(t, err)
		if _, err := plan.Parse(envelope); code(err) != plan.CodeEnvelope {
			t.Errorf("without %s: %v", what, err)
		}
	}
	status, err := review.Resolve(dir, approve(t, statement), before)
	must(t, err)
	if status.State != journal.Waiting || *status.NotBeforeUTC < before.Unix()+600 {
		t.Errorf("%+v", status)
	}
}

func code(err error) string {
	if r, ok := errors.AsType[*plan.Refusal](err); ok {
		return r.Code
	}
	if j, ok := errors.AsType[*journal.Error](err); ok {
		return j.FullCode()
	}
	return ""
}

// S153: whatever byte of a bundle is changed, it is refused, or what is imported is the journal all
// the same (a byte of the archive's padding).
func TestDamagedBundle(t *testing.T) {
	v := newVictim(t)
	v.run()
	var bundle bytes.Buffer
	must(t, review.Export(v.path("journal"), &bundle))
	must(t, review.Import(bytes.NewReader(bundle.Bytes()), v.path("whole")))
	original, err := journal.Read(v.path("whole"), record.NewLayout())
	must(t, err)
	for at := 0; at < bundle.Len(); at += 211 {
		damaged := bytes.Clone(bundle.Bytes())
		damaged[at] ^= 1
		dir := v.path(fmt.Sprint("damaged-", at))
		if err := review.Import(bytes.NewReader(damaged), dir); err != nil {
			continue
		}
		got, err := journal.Read(dir, record.NewLayout())
		if err != nil || got.Digest() != original.Digest() {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	for _, keep := range []int{0, 511, 512, 5000, bundle.Len() / 2} {
		if err := review.Import(bytes.NewReader(bundle.Bytes()[:keep]), v.path(fmt.Sprint("short-", keep))); code(err) != review.CodeBundle {
			t.Errorf("%d bytes: %v", keep, err)
		}
	}
}
