//go:build linux || darwin

package cooldownfile

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/retryafter"
)

var (
	npm   = cooldown.Authority{Host: "registry.example", Port: 443}
	files = cooldown.Authority{Host: "files.example", Port: 8443}
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// process is a process as far as cooldowns go: a table over the file of a folder.
type process struct {
	t     *testing.T
	file  *File
	table *cooldown.Table
	log   *bytes.Buffer
}

func begin(t *testing.T, dir string) *process { return beginWith(t, dir, durable.Options{}) }

func beginWith(t *testing.T, dir string, o durable.Options) *process {
	p := &process{t: t, log: &bytes.Buffer{}}
	p.file = open(dir, slog.New(slog.NewTextHandler(p.log, nil)), o)
	t.Cleanup(p.file.Close)
	p.table = cooldown.New(cooldown.Options{Memory: p.file, Rand: func(n int64) int64 { return n - 1 }})
	return p
}

// permit asks as a request does, both times.
func (p *process) permit(now time.Time, a cooldown.Authority) (cooldown.Permit, *cooldown.Refusal) {
	permit, refusal := p.table.Ask(context.Background(), now, a)
	if refusal != nil {
		return permit, refusal
	}
	return permit.Recheck(now)
}

func (p *process) allowed(now time.Time, a cooldown.Authority) cooldown.Permit {
	p.t.Helper()
	permit, refusal := p.permit(now, a)
	if refusal != nil {
		p.t.Fatal(refusal)
	}
	return permit
}

func finish(now time.Time, p cooldown.Permit, status int, hint ...string) cooldown.Transition {
	return p.Finish(now, status, retryafter.Parse(hint, now))
}

// meet is a request that is answered.
func (p *process) meet(now time.Time, a cooldown.Authority, status int, hint ...string) {
	p.t.Helper()
	finish(now, p.allowed(now, a), status, hint...)
}

// waits checks that nothing may be sent, and for how long.
func (p *process) waits(now time.Time, a cooldown.Authority, wait time.Duration) {
	p.t.Helper()
	if _, refusal := p.permit(now, a); refusal == nil || refusal.Wait != wait || refusal.Probing {
		p.t.Errorf("%s: %v, want a wait of %v", a, refusal, wait)
	}
}

func content(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func ls(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// R100: the next process waits for the rest of the delay, sends one probe, and its success ends
// what was kept.
func TestNextProcess(t *testing.T) {
	dir := t.TempDir()
	first := begin(t, dir)
	first.meet(start, npm, 429, "60")
	info, err := os.Stat(filepath.Join(dir, Name))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	second := begin(t, dir)
	second.waits(start.Add(10*time.Second), npm, 50*time.Second)
	second.waits(start.Add(60*time.Second-1), npm, 1)
	second.allowed(start.Add(time.Minute), files)
	probe := second.allowed(start.Add(time.Minute), npm)
	if _, refusal := second.permit(start.Add(time.Minute), npm); !probe.Probe() || refusal == nil || !refusal.Probing {
		t.Errorf("probe %v, beside it %v", probe.Probe(), refusal)
	}
	finish(start.Add(time.Minute), probe, 200)
	begin(t, dir).meet(start.Add(61*time.Second), npm, 200)
	if got := content(t, dir); strings.Contains(got, "registry.example") {
		t.Errorf("after recovery: %s", got)
	}
	if got := strings.Count(second.log.String(), "cooldown taken over"); got != 1 || strings.Count(second.log.String(), "\n") != 1 {
		t.Errorf("log: %s", second.log)
	}
}

// R100, R19 to R22: the ceiling is kept with the deadline, also when that is long over.
func TestCeilingIsKept(t *testing.T) {
	dir := t.TempDir()
	now := start
	for _, ceiling := range []time.Duration{60, 120, 240, 480, 600, 600} {
		p := begin(t, dir)
		p.meet(now, npm, 429)
		if s := p.table.Look(now, npm); s.Ceiling != ceiling*time.Second || s.Remaining != ceiling*time.Second {
			t.Errorf("%+v, want %v", s, ceiling)
		}
		now = now.Add(time.Hour)
	}
	p := begin(t, dir)
	p.meet(now, npm, 503) // without a hint it is no throttling
	p.meet(now, npm, 429)
	if s := p.table.Look(now, npm); s.Ceiling != time.Minute {
		t.Errorf("after recovery: %+v", s)
	}
}

// R100: a wall clock that was set back never shortens the wait, however often the process is
// started, and never makes it longer than the delay; one that was set forward at worst ends it.
func TestWallClock(t *testing.T) {
	for _, back := range []time.Duration{time.Minute, time.Hour, 30 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		dir := t.TempDir()
		begin(t, dir).meet(start, npm, 429, "300")
		set := start.Add(-back)
		begin(t, dir).waits(set, npm, 300*time.Second)
		begin(t, dir).waits(set.Add(100*time.Second), npm, 200*time.Second) // not 300 again
		begin(t, dir).waits(set.Add(299*time.Second), npm, time.Second)
		if p := begin(t, dir).allowed(set.Add(300*time.Second), npm); !p.Probe() {
			t.Error("no probe")
		}
	}
	dir := t.TempDir()
	begin(t, dir).meet(start, npm, 429, "600")
	begin(t, dir).waits(start.Add(-500*time.Millisecond), npm, 600*time.Second)
	begin(t, dir).waits(start.Add(100*time.Second), npm, 500*time.Second)
	if p := begin(t, dir).allowed(start.Add(1000*time.Hour), npm); !p.Probe() {
		t.Error("no probe")
	}
}

// R100: two processes at work at the same time learn of each other's before they send, at the wire
// whatever was seen a moment ago.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	gate, worker := begin(t, dir), begin(t, dir)
	gate.meet(start, npm, 200)
	worker.meet(start, npm, 200)
	late := worker.allowed(start, npm)
	waiting, _ := worker.table.Ask(t.Context(), start, npm)
	gate.meet(start, npm, 429, "60")
	if _, refusal := waiting.Recheck(start); refusal == nil || refusal.Wait != time.Minute {
		t.Errorf("about to be written: %v", refusal)
	}
	finish(start.Add(time.Second), late, 429, "120")
	gate.waits(start.Add(time.Second), npm, 120*time.Second)
	gate.meet(start.Add(time.Second), other, 429, "60")
	// judged with a moment's older clock
	worker.waits(start.Add(990*time.Millisecond), other, 60*time.Second+10*time.Millisecond)
	// Ask alone may look a little later.
	worker.meet(start.Add(time.Second), files, 429, "20")
	if _, refusal := gate.table.Ask(t.Context(), start.Add(time.Second+interval), files); refusal == nil || refusal.Wait != 20*time.Second-interval {
		t.Errorf("%v", refusal)
	}
	// Each probes by itself; a failed probe of one is known to the other, with its ceiling.
	now := start.Add(121 * time.Second)
	probe := gate.allowed(now, npm)
	worker.allowed(now, npm).Release(now)
	finish(now, probe, 429, "30")
	worker.waits(now, npm, 30*time.Second)
	if s := worker.table.Look(now, npm); s.Ceiling != 120*time.Second {
		t.Errorf("%+v", s)
	}
}

// R100: what another process has met is never lost, neither to a shorter cooldown nor to a recovery
// that does not know of it.
func TestLaterDeadlineOfAnotherStays(t *testing.T) {
	dir := t.TempDir()
	gate, worker := begin(t, dir), begin(t, dir)
	late := worker.allowed(start, npm)
	unaware := gate.allowed(start, npm)
	gate.meet(start, npm, 429, "10")
	now := start.Add(10 * time.Second)
	probe := gate.allowed(now, npm)
	finish(now, late, 429, "300")
	// R74: the verdict stands, for now
	if got := finish(now, probe, 200); got.Kind != cooldown.TransitionRecovered {
		t.Errorf("%+v", got)
	}
	begin(t, dir).waits(now, npm, 300*time.Second)
	finish(now, unaware, 429, "20")
	begin(t, dir).waits(now, npm, 300*time.Second)
	now = now.Add(interval) // Ask alone may look a little later
	gate.waits(now, npm, 300*time.Second-interval)
	worker.waits(now, npm, 300*time.Second-interval)
}

// R100, R19: a higher ceiling of another process stays, although this one's deadline is later.
func TestHigherCeilingOfAnotherStays(t *testing.T) {
	dir := t.TempDir()
	gate, worker := begin(t, dir), begin(t, dir)
	unaware := gate.allowed(start, npm)
	worker.meet(start, npm, 429)
	worker.meet(start.Add(time.Minute), npm, 429)
	now := start.Add(61 * time.Second)
	finish(now, unaware, 429, "300")
	next := begin(t, dir)
	next.waits(now, npm, 300*time.Second)
	if s := next.table.Look(now, npm); s.Ceiling != 120*time.Second {
		t.Errorf("%+v", s)
	}
}

// R74 R100: a process's own recovery ends its own record, also one that an older answer made longer
// during the probe.
func TestOwnRecoveryRemoves(t *testing.T) {
	dir := t.TempDir()
	p := begin(t, dir)
	late := p.allowed(start, npm)
	p.meet(start, npm, 429, "10")
	now := start.Add(10 * time.Second)
	probe := p.allowed(now, npm)
	finish(now, late, 429, "300")
	finish(now, probe, 200)
	if q := begin(t, dir).allowed(now, npm); q.Probe() {
		t.Error("the recovery was not kept")
	}
}

// R100: what is known is not forgotten with the file.
func TestFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	p, q := begin(t, dir), begin(t, dir)
	p.meet(start, npm, 429, "60")
	q.waits(start, npm, time.Minute)
	if err := os.Remove(filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*process{p, q} {
		r.waits(start.Add(time.Second), npm, 59*time.Second)
	}
	q.meet(start.Add(time.Second), files, 429, "60")
	p.waits(start.Add(time.Second), files, time.Minute)
	p.waits(start.Add(time.Second), npm, 59*time.Second)
}

// R32: without a data folder nothing is kept, and none is made. One that comes later is used.
func TestNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := begin(t, dir)
	p.meet(start, npm, 429, "60")
	if _, err := os.Stat(dir); !os.IsNotExist(err) || p.log.Len() > 0 {
		t.Errorf("%v; %s", err, p.log)
	}
	if q := begin(t, dir).allowed(start, npm); q.Probe() {
		t.Error("something was kept")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.meet(start, files, 429, "60")
	begin(t, dir).waits(start, files, time.Minute)
}

// R100: changes that come together are written together, and each is on the disk when its answer is
// handed on.
func TestCrowd(t *testing.T) {
	dir := t.TempDir()
	var writes atomic.Int32
	busy := make(chan struct{})
	p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if s == durable.StepSync && writes.Add(1) == 1 {
			<-busy
		}
		return call()
	}})
	crowd := func(i int) cooldown.Authority { return cooldown.Authority{Host: "a" + strconv.Itoa(i), Port: 443} }
	first := p.file.next
	var done sync.WaitGroup
	for i := range 200 {
		permit := p.allowed(start, crowd(i))
		done.Go(func() {
			finish(start, permit, 429, "60")
			if !strings.Contains(content(t, dir), `"`+crowd(i).String()+`"`) {
				t.Errorf("%s was not on the disk", crowd(i))
			}
		})
	}
	// all of them, in the first write or behind it
	for joined := 0; joined < 200; time.Sleep(time.Millisecond) {
		p.file.joining.Lock()
		if joined = len(first.dirty); p.file.next != first {
			joined += len(p.file.next.dirty)
		}
		p.file.joining.Unlock()
	}
	close(busy)
	done.Wait()
	if n := writes.Load(); n > 2 {
		t.Errorf("%d writes for 200 changes", n)
	}
}

// R100: what is written together is written as of the latest change, so that no deadline is cut.
func TestCrowdIsWrittenAsOfTheLatest(t *testing.T) {
	dir, busy := t.TempDir(), make(chan struct{})
	var once sync.Once
	p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		once.Do(func() { <-busy })
		return call()
	}})
	var done sync.WaitGroup
	first, later := p.file.next, start.Add(5*time.Second)
	for i, c := range []struct {
		now time.Time
		a   cooldown.Authority
	}{{start, other}, {start, files}, {later, npm}} {
		permit := p.allowed(start, c.a)
		done.Go(func() { finish(c.now, permit, 429, "600") })
		for joined := -1; joined < i; time.Sleep(time.Millisecond) {
			p.file.joining.Lock()
			if joined = -1; p.file.next != first {
				joined = len(p.file.next.dirty)
			}
			p.file.joining.Unlock()
		}
	}
	close(busy)
	done.Wait()
	begin(t, dir).waits(later, npm, 600*time.Second)
}

// R100: a process that was stopped while it has the folder's lock holds up nobody for long, and
// nothing fails for it.
func TestStoppedProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p := begin(t, dir)
		folder, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.meet(began, npm, 429, "60")
		if took := time.Since(began); took > 3*time.Second || !strings.Contains(p.log.String(), "a cooldown was not kept") {
			t.Errorf("after %v: %s", took, p.log)
		}
		p.waits(began, npm, time.Minute)
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
		p.meet(began, files, 429, "60") // takes the other along
		q := begin(t, dir)
		q.waits(began, npm, time.Minute)
		q.waits(began, files, time.Minute)
	})
}

// R33 R100: the file is bounded; what ends first gives way.
func TestFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	p := begin(t, dir)
	p.meet(start, npm, 429, "10")
	var all sync.WaitGroup
	for i := range maxRecords {
		permit := p.allowed(start, cooldown.Authority{Host: strings.Repeat("x", 60) + "." + strconv.Itoa(i) + ".example", Port: 443})
		all.Go(func() { finish(start, permit, 429, "60") })
	}
	all.Wait()
	q := begin(t, dir)
	q.allowed(start, npm)
	if n := len(q.table.Snapshot(start)); n != maxRecords+1 {
		t.Errorf("%d authorities", n)
	}
	if got := ls(t, dir); !slices.Equal(got, []string{Name}) {
		t.Errorf("left behind: %v", got)
	}
}
