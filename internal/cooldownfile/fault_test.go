//go:build linux || darwin

package cooldownfile

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

var errDisk = errors.New("input/output error")

type killed struct{}

// R100: every step of a write fails, with and without its effect, or the process is killed behind
// it. What was kept before is there afterwards, what was just met is there or not, whole; a failure
// is told, fails no request and forgets nothing; and the next change takes everything along and
// leaves nothing behind.
func TestEveryStepOfAWrite(t *testing.T) {
	steps := []durable.Step{durable.StepCreate, durable.StepWrite, durable.StepSync, durable.StepRename, durable.StepSyncDir}
	for _, step := range steps {
		for _, mode := range []string{"error", "error but landed", "killed"} {
			t.Run(string(step)+" "+mode, func(t *testing.T) {
				dir, armed, taken := t.TempDir(), false, []durable.Step{}
				p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
					if !armed || s != step {
						taken = append(taken, s)
						return call()
					}
					armed = false
					if mode != "error" {
						if err := call(); err != nil {
							return err
						}
					}
					if mode == "killed" {
						panic(killed{})
					}
					return errDisk
				}})
				p.meet(start, npm, 429, "60")
				if !slices.Equal(taken, steps) {
					t.Errorf("took %v", taken)
				}
				armed = true
				func() {
					defer func() {
						if r := recover(); r != nil && r != (killed{}) {
							panic(r)
						}
					}()
					p.meet(start, files, 429, "90")
				}()
				if armed {
					t.Fatal("the step was not taken")
				}
				failedWriteIsTold(t, p, mode, step)
				next := begin(t, dir)
				next.waits(start.Add(time.Second), npm, 59*time.Second)
				permit, refusal := next.permit(start.Add(time.Second), files)
				if landed := slices.Index(steps, step) > slices.Index(steps, durable.StepRename) || step == durable.StepRename && mode != "error"; landed != (refusal != nil) {
					t.Errorf("found again: %v", refusal)
				} else if !landed {
					finish(start.Add(time.Second), permit, 429, "89")
				}
				next.meet(start.Add(time.Second), other, 429, "60")
				for _, r := range []*process{begin(t, dir), p} {
					r.waits(start.Add(2*time.Second), npm, 58*time.Second)
					r.waits(start.Add(2*time.Second), files, 88*time.Second)
					r.waits(start.Add(2*time.Second), other, 59*time.Second)
				}
				if got := ls(t, dir); !slices.Equal(got, []string{Name}) {
					t.Errorf("left behind: %v", got)
				}
			})
		}
	}
}

func failedWriteIsTold(t *testing.T, p *process, mode string, step durable.Step) {
	t.Helper()
	if mode == "killed" {
		return
	}
	p.waits(start.Add(time.Second), files, 89*time.Second)
	if got := p.log.String(); strings.Count(got, "a cooldown was not kept") != 1 || !strings.Contains(got, string(step)) || !strings.Contains(got, Name) {
		t.Errorf("log: %s", got)
	}
}

// R100: what could not be written goes with the next change.
func TestFailedWriteIsMadeUpFor(t *testing.T) {
	dir, full := t.TempDir(), true
	p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if full && s == durable.StepWrite {
			return errDisk
		}
		return call()
	}})
	p.meet(start, npm, 429, "60")
	full = false
	p.meet(start, files, 429, "60")
	q := begin(t, dir)
	q.waits(start, npm, time.Minute)
	q.waits(start, files, time.Minute)
}

// R100: a write that failed is also made up for without another change, when a request asks.
func TestFailedWriteIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, full := t.TempDir(), true
		p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
			if full && s == durable.StepWrite {
				return errDisk
			}
			return call()
		}})
		p.meet(start, npm, 429, "60")
		full = false
		for _, after := range []time.Duration{time.Second, 4 * time.Second} {
			p.table.Ask(t.Context(), start.Add(after), npm)
			synctest.Wait()
		}
		begin(t, dir).waits(start.Add(4*time.Second), npm, 56*time.Second)
	})
}

// R100: a recovery that could not be written is one all the same, whatever else changes in the
// file.
func TestFailedRemoval(t *testing.T) {
	dir, full := t.TempDir(), false
	p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if full && s == durable.StepWrite {
			return errDisk
		}
		return call()
	}})
	p.meet(start, npm, 429, "10")
	full = true
	now := start.Add(10 * time.Second)
	p.meet(now, npm, 200)
	q := begin(t, dir)
	q.meet(now, files, 429, "60")
	p.waits(now, files, time.Minute)
	if permit := p.allowed(now, npm); permit.Probe() {
		t.Error("it was taken back")
	}
	full = false
	p.meet(now, other, 429, "60")
	if got := content(t, dir); strings.Contains(got, npm.String()) {
		t.Errorf("it was not made up for: %s", got)
	}
}

// R100: after the wall clock was set back, a process counts by its own clock when a delay is over,
// although the file could not say so.
func TestClockSetBackOnAFullDisk(t *testing.T) {
	dir, full := t.TempDir(), true
	begin(t, dir).meet(start, npm, 429, "300")
	p := beginWith(t, dir, durable.Options{Around: func(s durable.Step, _ string, call func() error) error {
		if full && s == durable.StepWrite {
			return errDisk
		}
		return call()
	}})
	set := start.Add(-time.Hour)
	p.waits(set, npm, 300*time.Second)
	full = false
	p.meet(set.Add(300*time.Second), npm, 200)
	if got := content(t, dir); strings.Contains(got, npm.String()) {
		t.Errorf("after the recovery: %s", got)
	}
}
