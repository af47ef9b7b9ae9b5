package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// world is a virtual clock: sleeping moves both clocks, and tests can make them disagree.
type world struct {
	wall     time.Time
	mono     time.Duration
	slept    []time.Duration
	early    time.Duration // the sleeper comes back this much too early
	late     time.Duration // or too late
	slowWall time.Duration // the wall clock lags this much behind after a sleep
	sleepErr error
	waits    []time.Duration
	order    []string
}

func newWorld() *world { return &world{wall: noon, mono: 1000 * time.Hour} }

func (w *world) clock() Clock {
	return Clock{
		Now:     func() time.Time { return w.wall },
		Elapsed: func() time.Duration { return w.mono },
		Sleep: func(_ context.Context, d time.Duration) error {
			w.slept = append(w.slept, d)
			w.order = append(w.order, "sleep")
			w.pass(d - w.early + w.late)
			w.wall = w.wall.Add(-w.slowWall)
			return w.sleepErr
		},
	}
}

func (w *world) pass(d time.Duration) { w.mono += d; w.wall = w.wall.Add(d) }

func (w *world) sequence(opt Options) *Sequence {
	opt.Clock = w.clock()
	opt.Waiting = func(d time.Duration) {
		w.waits = append(w.waits, d)
		w.order = append(w.order, "observe")
	}
	return New(opt)
}

// reply is one scripted answer: it takes its time, then comes.
type reply struct {
	status int
	after  []string
	takes  time.Duration
	id     string
	err    error // besides the status
	close  error
	save   error
}

var errBoom = errors.New("boom")

// script plays replies in order and counts what was sent.
type script struct {
	w        *world
	replies  []reply
	sent     int
	timeouts []time.Duration
}

func (s *script) do(_ context.Context, a Attempt) (string, Outcome, error) {
	if s.sent >= len(s.replies) {
		panic("more requests than answers")
	}
	r := s.replies[s.sent]
	s.sent++
	s.timeouts = append(s.timeouts, a.Timeout)
	s.w.order = append(s.w.order, fmt.Sprint("send", s.sent))
	s.w.pass(r.takes)
	out := Outcome{Status: r.status, RequestID: r.id, CloseErr: r.close, PersistErr: r.save}
	if r.status == 429 {
		out.RetryAfter = retryafter.Parse(r.after, s.w.wall)
	}
	if r.err != nil || r.status < 400 {
		return fmt.Sprint("body", s.sent), out, r.err
	}
	return "", out, nil // a transport that does not raise
}

// dated is an HTTP-date d after noon.
func dated(d time.Duration) []string { return []string{retryafter.FormatDate(noon.Add(d))} }

func secs(n string) []string { return []string{n} }

func TestTable(t *testing.T) {
	ok := reply{status: 200}
	for _, tt := range []struct {
		name    string
		opt     Options
		read    ReadOptions
		world   func(*world)
		replies []reply
		code    Code            // "" means success
		first   int             // status that the error must lead with, if code is set
		slept   []time.Duration // exactly
		sent    int
	}{
		// S23: only a 429 waits, and nothing else uses the opportunity up.
		{name: "200", replies: []reply{ok}, sent: 1},
		// S29: 429 then success.
		{name: "429 200", replies: []reply{{status: 429, after: secs("5")}, ok}, slept: d(5 * time.Second), sent: 2},
		// S25: exactly 30 s is allowed (tc-037), also as a date.
		{name: "30 s", replies: []reply{{status: 429, after: secs("30")}, ok}, slept: d(MaxDelay), sent: 2},
		{name: "date in 30 s", replies: []reply{{status: 429, after: dated(30 * time.Second)}, ok}, slept: d(MaxDelay), sent: 2},
		// S25, S17; tc-029, tc-030, tc-031, tc-033, tc-034: never shortened, never waited in part.
		{name: "31 s", replies: []reply{{status: 429, after: secs("31")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "60 s", replies: []reply{{status: 429, after: secs("60")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "1 h", replies: []reply{{status: 429, after: secs("3600")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "date in 31 s", replies: []reply{{status: 429, after: dated(31 * time.Second)}}, code: CodeDelay, first: 429, sent: 1},
		// tc-001, tc-002, tc-005, tc-006, tc-007: huge values never wrap into short or negative
		// ones.
		{name: "wrap 1", replies: []reply{{status: 429, after: secs("9223372037")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "wrap 2", replies: []reply{{status: 429, after: secs("18446744074")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "wrap 3", replies: []reply{{status: 429, after: secs("9223372036854775807")}}, code: CodeDelay, first: 429, sent: 1},
		{name: "wrap 4", replies: []reply{{status: 429, after: secs("99999999999999999999999")}}, code: CodeDelay, first: 429, sent: 1},
		// S17: an oversized field stops whatever it holds.
		{name: "oversized 5", replies: []reply{{status: 429, after: secs(strings.Repeat(" ", 128) + "5")}}, code: CodeDelay, first: 429, sent: 1},
		// S15, S28: a past date and zero wait for nothing and still use the opportunity up (see
		// TestZeroUsesUp).
		{name: "past date", replies: []reply{{status: 429, after: dated(-time.Hour)}, ok}, slept: d(0), sent: 2},
		{name: "zero", replies: []reply{{status: 429, after: secs("0")}, ok}, slept: d(0), sent: 2},
		// S16; tc-010, tc-011, tc-013, tc-054: missing and malformed fields stand for one second.
		{name: "missing", replies: []reply{{status: 429}, ok}, slept: d(time.Second), sent: 2},
		{name: "negative", replies: []reply{{status: 429, after: secs("-5")}, ok}, slept: d(time.Second), sent: 2},
		{name: "fraction", replies: []reply{{status: 429, after: secs("0.493")}, ok}, slept: d(time.Second), sent: 2},
		// tc-017: two fields are none.
		{name: "two fields", replies: []reply{{status: 429, after: []string{"1", "20"}}, ok}, slept: d(time.Second), sent: 2},
		// S26; tc-035: the budget is compared before the sleep, and must be strictly larger than
		// the delay.
		{name: "budget equal", opt: Options{Budget: 10 * time.Second}, replies: []reply{{status: 429, after: secs("10")}}, code: CodeBudget, first: 429, sent: 1},
		{name: "budget one over", opt: Options{Budget: 10*time.Second + 1}, replies: []reply{{status: 429, after: secs("10")}, ok}, slept: d(10 * time.Second), sent: 2},
		{name: "slow first answer", replies: []reply{{status: 429, after: secs("30"), takes: 30 * time.Second}}, code: CodeBudget, first: 429, sent: 1},
		// S22: 60 s in all, also when more is asked for.
		{name: "asked for an hour", opt: Options{Budget: time.Hour}, replies: []reply{{status: 429, after: secs("30"), takes: 30 * time.Second}}, code: CodeBudget, first: 429, sent: 1},
		// S27: the sleeper came back early; the deadline came during the sleep. tc-043.
		{name: "early timer", world: func(w *world) { w.early = 1 }, replies: []reply{{status: 429, after: secs("5")}}, code: CodeWait, first: 429, slept: d(5 * time.Second), sent: 1},
		{name: "late timer", world: func(w *world) { w.late = 55 * time.Second }, replies: []reply{{status: 429, after: secs("5")}}, code: CodeBudget, first: 429, slept: d(5 * time.Second), sent: 1},
		{name: "interrupted", world: func(w *world) { w.sleepErr = context.Canceled }, replies: []reply{{status: 429, after: secs("5")}}, code: CodeWait, first: 429, slept: d(5 * time.Second), sent: 1},
		// tc-043: the named instant has not come by the clock that it was named for.
		{name: "wall clock set back", world: func(w *world) { w.slowWall = time.Second }, replies: []reply{{status: 429, after: dated(5 * time.Second)}}, code: CodeWait, first: 429, slept: d(5 * time.Second), sent: 1},
		// S29, S30: fewer attempts allowed, or no request left.
		{name: "one attempt", read: ReadOptions{Attempts: 1}, replies: []reply{{status: 429, after: secs("1")}}, code: CodeExhausted, first: 429, sent: 1},
		{name: "last request", opt: Options{MaxRequests: 1}, replies: []reply{{status: 429, after: secs("1")}}, code: CodeExhausted, first: 429, sent: 1},
		{name: "three asked", read: ReadOptions{Attempts: 3}, replies: []reply{{status: 429, after: secs("1")}, {status: 429, after: secs("1"), id: "second"}}, code: "second", first: 429, slept: d(time.Second), sent: 2},
		// S24: persistence before close before everything else.
		{name: "not saved", replies: []reply{{status: 429, after: secs("1"), save: errBoom, close: errBoom}}, code: CodePersistence, sent: 1},
		{name: "not closed", replies: []reply{{status: 429, after: secs("60"), close: errBoom}}, code: CodeClose, first: 429, sent: 1},
		// S33: a success at the deadline is none.
		{name: "late success", replies: []reply{{status: 200, takes: MaxBudget}}, code: CodeBudget, sent: 1},
		{name: "success just in time", replies: []reply{{status: 200, takes: MaxBudget - 1}}, sent: 1},
		{name: "late second", replies: []reply{{status: 429, after: secs("1")}, {status: 200, takes: 59 * time.Second}}, code: CodeBudget, first: 429, slept: d(time.Second), sent: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.world != nil {
				tt.world(w)
			}
			seq := w.sequence(tt.opt)
			sc := &script{w: w, replies: tt.replies}
			got, err := Read(t.Context(), seq, tt.read, sc.do)
			if !slices.Equal(w.slept, tt.slept) || !slices.Equal(w.waits, tt.slept) {
				t.Errorf("slept %v, observed %v, want %v", w.slept, w.waits, tt.slept)
			}
			if sc.sent != tt.sent {
				t.Errorf("%d requests, want %d", sc.sent, tt.sent)
			}
			if tt.code == "" {
				if err != nil || got != fmt.Sprint("body", tt.sent) {
					t.Fatalf("got %q, %v", got, err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			if want := strings.TrimPrefix(string(tt.code), "second"); string(codeOf(err)) != want {
				t.Errorf("stopped with %q, want %q: %v", codeOf(err), want, err)
			}
			if status, ok := errors.AsType[*StatusError](err); tt.first != 0 && (!ok || status.Status != tt.first) {
				t.Errorf("the first failure is lost: %v", err)
			}
		})
	}
}

func d(durations ...time.Duration) []time.Duration { return durations }

func codeOf(err error) Code {
	if stop, ok := errors.AsType[*Stop](err); ok {
		return stop.Code
	}
	return ""
}

// S14, S25: a 29 February that does not exist in the resolved year is endless, not zero and not a
// second.
func TestUnrepresentable(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Report{
		Kind: retryafter.KindSeconds, Notes: retryafter.NoteUnrepresentable, Received: noon,
	}})
	if stop, ok := errors.AsType[*Stop](err); !ok || stop.Code != CodeDelay || !stop.Unrepresentable || len(w.slept) != 0 {
		t.Fatalf("got %v after %v", err, w.slept)
	}
}

// S21: one opportunity for the whole sequence, whatever page it is spent on; S63: pages read before
// stay read.
func TestOneOpportunityForAllPages(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{MaxRequests: 200})
	sc := &script{w: w, replies: []reply{{status: 200}, {status: 429, after: secs("2")}, {status: 200}, {status: 200}, {status: 429, after: secs("2")}}}
	for page := range 3 {
		if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
	}
	_, err := Read(t.Context(), seq, ReadOptions{}, sc.do)
	if codeOf(err) != CodeExhausted || sc.sent != 5 || len(w.slept) != 1 {
		t.Fatalf("got %v after %d requests and %v", err, sc.sent, w.slept)
	}
	// What stopped stays stopped, and sends nothing.
	if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); codeOf(err) != CodeExhausted || sc.sent != 5 {
		t.Fatalf("a stopped sequence went on: %v, %d requests", err, sc.sent)
	}
}

// S23: other statuses are not waited for and leave the opportunity alone. tc-050: a server's
// decision is not a transport fault, and the other way round.
func TestOnly429Waits(t *testing.T) {
	for _, status := range []int{0, 301, 400, 404, 408, 500, 502, 503, 504} {
		w := newWorld()
		seq := w.sequence(Options{})
		sc := &script{w: w, replies: []reply{{status: status, after: secs("1"), err: errBoom}}}
		_, err := Read(t.Context(), seq, ReadOptions{}, sc.do)
		if !errors.Is(err, errBoom) || codeOf(err) != "" || seq.Used() || len(w.slept) != 0 || sc.sent != 1 {
			t.Errorf("status %d: %v, used %v, slept %v, sent %d", status, err, seq.Used(), w.slept, sc.sent)
		}
		if err := seq.Wait(t.Context(), Outcome{Status: status}); !errors.Is(err, ErrNotThrottled) || seq.Stopped() != nil {
			t.Errorf("Wait on %d: %v", status, err)
		}
	}
}

// S22: the deadline only shrinks; the earliest of all that are given wins; 60 s include sends and
// bodies.
func TestDeadlineOnlyShrinks(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	if seq.Remaining() != MaxBudget {
		t.Fatalf("starts with %v", seq.Remaining())
	}
	for _, step := range []struct{ limit, pass, want time.Duration }{
		{time.Hour, 0, 60 * time.Second},
		{40 * time.Second, 0, 40 * time.Second},
		{50 * time.Second, 5 * time.Second, 35 * time.Second},
		{math.MaxInt64, 0, 35 * time.Second},
		{-time.Second, 0, 0},
		{time.Hour, 0, 0},
	} {
		seq.Limit(step.limit)
		w.pass(step.pass)
		if got := seq.Remaining(); got != step.want {
			t.Errorf("Limit(%v) and %v later: %v, want %v", step.limit, step.pass, got, step.want)
		}
	}
	sc := &script{w: w}
	if _, err := Read(t.Context(), seq, ReadOptions{}, sc.do); codeOf(err) != CodeBudget || sc.sent != 0 {
		t.Errorf("a dead sequence sent something: %v", err)
	}
}

// S22: a context's deadline is a caller's deadline.
func TestContextDeadline(t *testing.T) {
	w := newWorld()
	w.wall = time.Now()
	seq := w.sequence(Options{})
	ctx, cancel := context.WithDeadline(t.Context(), w.wall.Add(20*time.Second))
	defer cancel()
	sc := &script{w: w, replies: []reply{{status: 429, after: secs("20")}}}
	if _, err := Read(ctx, seq, ReadOptions{}, sc.do); codeOf(err) != CodeBudget || len(w.slept) != 0 {
		t.Fatalf("%v after %v", err, w.slept)
	}
	if sc.timeouts[0] != 20*time.Second {
		t.Errorf("the attempt got %v", sc.timeouts[0])
	}
}

// S31: the timeout of an attempt is the smaller of what was asked, or 180 s, and what is left.
func TestAttemptTimeout(t *testing.T) {
	for _, tt := range []struct{ asked, first, second time.Duration }{
		{0, 60 * time.Second, 47 * time.Second},
		{time.Hour, 60 * time.Second, 47 * time.Second},
		{10 * time.Second, 10 * time.Second, 10 * time.Second},
		{50 * time.Second, 50 * time.Second, 47 * time.Second},
	} {
		w := newWorld()
		sc := &script{w: w, replies: []reply{{status: 429, after: secs("10"), takes: 3 * time.Second}, {status: 200}}}
		if _, err := Read(t.Context(), w.sequence(Options{}), ReadOptions{Timeout: tt.asked}, sc.do); err != nil {
			t.Fatal(err)
		}
		if want := d(tt.first, tt.second); !slices.Equal(sc.timeouts, want) {
			t.Errorf("asked %v: got %v, want %v", tt.asked, sc.timeouts, want)
		}
	}
}

// S25: a date's delay is worked out again when the decision is made, not when the answer came.
func TestDateAgainstDecisionTime(t *testing.T) {
	w := newWorld()
	seq := w.sequence(Options{})
	report := retryafter.Parse(dated(40*time.Second), noon)
	w.pass(10*time.Second + 300*time.Millisecond)
	if err := seq.Wait(t.Context(), Outcome{Status: 429, RetryAfter: report}); err != nil {
		t.Fatal(err)
	}
	// tc-020, tc-021, tc-022, tc-025, tc-028: to the nanosecond, nothing rounded away.
	if want := d(29*time.Second + 700*time.Millisecond); !slices.Equal(w.slept, want) {
		t.Fatalf("slept %v, want %v", w.slept, want)
	}
}

// tc-023: a two-digit year is this century's. tc-026: seconds are seconds.
func TestUnits(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"30":                              30 * time.Second,
		"Tuesday, 01-Dec-26 12:00:20 GMT": 20 * time.Second,
		"Tue Dec  1 12:00:20 2026":        20 * time.Second,
	} {
		w := newWorld()
		err := w.sequence(Options{}).Wait(t.Context(), Outcome{Status: 429, RetryAfter: retryafter.Parse(secs(field), noon)})
		if err != nil || !slices.Equal(w.slept, d(want)) {
			t.Errorf("%s: %v, slept %v", field, err, w.slept)
		}
	}
}

// S28: used up before the sleep, and by a wait of nothing too.
func TestZeroUsesUp(t *testing.T) {
	for _, field := range []string{"0", "5"} {
		w := newWorld()
		var seq *Sequence
		var during bool
		clock := w.clock()
		inner := clock.Sleep
		clock.Sleep = func(ctx context.Context, d time.Duration) error { during = seq.Used(); return inner(ctx, d) }
		seq = New(Options{Clock: clock})
		out := Outcome{Status: 429, RetryAfter: retryafter.Parse(secs(field), noon)}
		if err := seq.Wait(t.Context(), out); err != nil || !during {
			t.Fatalf("%s: %v, used during the sleep: %v", field, err, during)
		}
		if err := seq.Wait(t.Context(), out); codeOf(err) != CodeExhausted || len(w.slept) != 1 {
			t.Errorf("%s: a second wait gave %v", field, err)
		}
	}
}
