package recovery

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// S24: the whole order of checks, each reason hidden behind all that come before it.
func TestOrderOfChecks(t *testing.T) {
	out := Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("31"), noon), CloseErr: errBoom, PersistErr: errBoom}
	spent := func() *Sequence {
		w := newWorld()
		seq := w.sequence(Options{})
		if err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("0"), noon)}); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	check := func(seq *Sequence, want Code) {
		t.Helper()
		err := seq.Wait(t.Context(), out)
		if codeOf(err) != want || want != "" && !errors.Is(err, want) || errors.Is(err, CodeWait) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check(spent(), CodePersistence)
	out.PersistErr = nil
	check(spent(), CodeClose)
	out.CloseErr, out.Status = nil, 503
	check(spent(), "")
	out.Status = 429
	check(spent(), CodeExhausted)
	w := newWorld()
	w.pass(0)
	seq := w.sequence(Options{Budget: time.Second})
	check(seq, CodeDelay) // before the budget
}

// S29: the first failure leads, the second is its cause, and a warning names the second one's code.
func TestFirstFailureLeads(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	second := &StatusError{Status: 503}
	sc := &script{w: w, replies: []reply{{status: 429, after: secs("1"), id: "one"}, {status: 503, id: "two", err: second}}}
	_, err := Read(t.Context(), seq, ReadOptions{CodeOf: func(e error) string {
		if e != error(second) { //nolint:errorlint // identity is what is tested
			t.Errorf("asked for the code of %v", e)
		}
		return "azure-http-error"
	}}, sc.do)
	failure, ok := errors.AsType[*Failure](err)
	if !ok || failure.Cause != error(second) { //nolint:errorlint // identity is what is tested
		t.Fatalf("got %v", err)
	}
	if lead, _ := errors.AsType[*StatusError](err); lead.Status != 429 || lead.RequestID != "one" {
		t.Errorf("the lead is %v", lead)
	}
	if !slices.Contains(seq.Warnings(), "the read was not recovered: azure-http-error") {
		t.Errorf("warnings: %q", seq.Warnings())
	}
	if seq.Stopped() != nil {
		t.Errorf("a 503 ended the sequence: %v", seq.Stopped())
	}
}

// S24, S29: what a second attempt comes to can end the sequence for the reads after it.
func TestSecondOutcomeEndsTheSequence(t *testing.T) {
	for want, second := range map[Code]reply{
		CodeExhausted:   {status: 429, after: secs("1")},
		CodeClose:       {status: 429, close: errBoom},
		CodePersistence: {status: 200, save: errBoom},
	} {
		w := newWorld()
		seq := w.sequence(Options{})
		sc := &script{w: w, replies: []reply{{status: 429, after: secs("1")}, second}}
		_, err := Read(t.Context(), seq, ReadOptions{}, sc.do)
		if lead, _ := errors.AsType[*StatusError](err); lead == nil || seq.Stopped() == nil || seq.Stopped().Code != want || len(w.slept) != 1 {
			t.Errorf("%s: %v, stopped %v, slept %v", want, err, seq.Stopped(), w.slept)
		}
		if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); codeOf(err) != want || sc.sent != 2 {
			t.Errorf("%s: the next read gave %v after %d requests", want, err, sc.sent)
		}
	}
}

// S32: whether the transport raises a 429 or hands it over makes no difference.
func TestRaisedOrReturned(t *testing.T) {
	for _, raised := range []error{nil, &StatusError{Status: 429, RequestID: "r"}} {
		w := newWorld()
		seq := w.sequence(Options{})
		sc := &script{w: w, replies: []reply{{status: 429, after: secs("7"), id: "r", err: raised}, {status: 200, id: "s"}}}
		got, err := Read(t.Context(), seq, ReadOptions{}, sc.do)
		if err != nil || got != "body2" || !slices.Equal(w.slept, d(7*time.Second)) || !slices.Equal(seq.IDs(), []string{"r", "s"}) {
			t.Errorf("raised %v: %q, %v, slept %v, ids %v", raised, got, err, w.slept, seq.IDs())
		}
	}
}

// S34: after a throttled write the wait comes first, then one read; a read that is throttled too
// has no wait left. S35; tc-047, tc-048, tc-079, tc-080, tc-081: the write itself is sent once.
func TestWriteThenRead(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	writes := 0
	writes++ // PUT, answered 429
	if err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("4"), noon)}); err != nil {
		t.Fatal(err)
	}
	sc := &script{w: w, replies: []reply{{status: 429, after: secs("1")}}}
	_, err := Read(t.Context(), seq, ReadOptions{}, sc.do)
	if codeOf(err) != CodeExhausted || writes != 1 || !slices.Equal(w.order, []string{"observe", "sleep", "send1"}) {
		t.Fatalf("%v, %d writes, %v", err, writes, w.order)
	}
	// Acknowledged: read at once, and one delayed read if that is throttled.
	w = newWorld()
	sc = &script{w: w, replies: []reply{{status: 429, after: secs("4")}, {status: 200}}}
	if _, err := Read(t.Context(), w.sequence(Options{}), ReadOptions{}, sc.do); err != nil {
		t.Fatal(err)
	}
	if want := []string{"send1", "observe", "sleep", "send2"}; !slices.Equal(w.order, want) {
		t.Errorf("order %v", w.order)
	}
}

// S36: identifiers are bounded, sanitised, listed in one warning, and one failure is not noted
// twice.
func TestRequestIDs(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	seq.Note("")
	seq.Note("good:1")
	seq.NoteFailure("good:1")
	seq.Note("evil\r\nid")
	seq.NoteFailure("other\x1b[31m") // withheld like the last one
	if want := []string{"good:1", "[withheld]"}; !slices.Equal(seq.IDs(), want) {
		t.Fatalf("got %q, want %q", seq.IDs(), want)
	}
	for range 300 {
		seq.Note("x")
	}
	if len(seq.IDs()) != MaxIDs {
		t.Errorf("kept %d", len(seq.IDs()))
	}
	lists := 0
	for _, warning := range seq.Warnings() {
		if strings.Contains(warning, "\x1b") || strings.Contains(warning, "\n") {
			t.Errorf("foreign text in %q", warning)
		}
		if strings.Contains(warning, "good:1") {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("%d warnings list the identifiers", lists)
	}
}

// S16: the fallback is diagnosed, once.
func TestFallbackIsDiagnosed(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	_ = seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(nil, noon)})
	if got := seq.Warnings(); len(got) != 1 || !strings.Contains(got[0], "had no Retry-After") {
		t.Errorf("warnings %q", got)
	}
	seq = w.sequence(Options{})
	_ = seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse([]string{"soon"}, noon)})
	if got := seq.Warnings(); len(got) != 1 || !strings.Contains(got[0], "had an invalid Retry-After") {
		t.Errorf("warnings %q", got)
	}
}

// S22, S62: the request limit of the sequence counts second attempts too.
func TestRequestLimit(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{MaxRequests: 3})
	sc := &script{w: w, replies: []reply{{status: 200}, {status: 429, after: secs("1")}, {status: 200}}}
	for range 2 {
		if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); codeOf(err) != CodeExhausted || sc.sent != 3 {
		t.Errorf("%v after %d", err, sc.sent)
	}
}

// tc-005: the number in the error is the server's, never negative, never shortened.
func TestStopSaysHowLong(t *testing.T) {
	w := newWorld()
	err := w.sequence(Options{}).Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("60"), noon)})
	stop, _ := errors.AsType[*Stop](err)
	if stop.Delay != time.Minute || !strings.Contains(err.Error(), "1m0s") || strings.Contains(err.Error(), "-") && !strings.HasPrefix(err.Error(), "read-") {
		t.Errorf("got %v (%v)", err, stop.Delay)
	}
}

// S27: for a caller of Wait too the deadline that came during the sleep is a stop, not a go.
func TestWaitPastTheDeadline(t *testing.T) {
	for late, want := range map[time.Duration]Code{54 * time.Second: "", 55 * time.Second: CodeBudget, time.Hour: CodeBudget} {
		w := newWorld()
		w.late = late
		err := w.sequence(Options{}).Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(secs("5"), noon)})
		if codeOf(err) != want || (want == "") != (err == nil) {
			t.Errorf("%v late: %v, want %q", late, err, want)
		}
	}
}
