package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Source gives public files after admission; a *gate.Gate is one.
type Source interface {
	Fetch(ctx context.Context, name, file, base string) (*gate.Copy, error)
}

// Target is where the copies go. Its errors are *Postponed, *Rejected and ErrPresent; anything else
// may pass.
type Target interface {
	// Base is the address below which the target's files lie, without a trailing slash.
	Base() string
	// Holds reports whether the target has the file.
	Holds(ctx context.Context, j Job) (bool, error)
	// Put publishes a file that was verified, with one request.
	Put(ctx context.Context, j Job, c *gate.Copy, f *Spooled) error
}

// Lane is one ecosystem's way from the public upstream to the mirror.
type Lane struct {
	Source Source
	Target Target
}

// Step names a step of a job, for tests that kill the process there.
type Step string

// The steps of a job in their order.
const (
	StepProbe   Step = "probe"
	StepFetch   Step = "fetch"
	StepVerify  Step = "verify"
	StepPublish Step = "publish"
	StepDone    Step = "done"
)

// WorkerOptions make a Worker.
type WorkerOptions struct {
	Lanes map[string]Lane // by ecosystem
	// SpoolDir holds files on their way, without names; it exists.
	SpoolDir string
	// MaxBytes bounds a file; what is larger is dead.
	MaxBytes int64
	Metrics  *obs.Metrics
	Logger   *slog.Logger
	// Rand gives a number from 0 to n-1 that spreads waiting jobs; nil means the usual source.
	Rand func(n int64) int64
	// At is called before ("-probe") and after ("+probe") each step; may be nil.
	At func(mark string)
}

// Worker runs jobs. It is safe for concurrent use; files of one package go to the target one after
// the other, since registries answer writers who meet at one document with a conflict.
type Worker struct {
	WorkerOptions
	packages keyed
}

// NewWorker returns a worker.
func NewWorker(o WorkerOptions) *Worker {
	if o.Rand == nil {
		o.Rand = rand.Int64N
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	return &Worker{WorkerOptions: o, packages: keyed{held: map[string]*turn{}}}
}

// After a cooldown, clients come first: mirror work waits this much longer than the cooldown,
// spread so that it does not come at once.
const (
	clientsFirst = 3 * time.Second
	spread       = 10 * time.Second
	probeSpread  = 3 * time.Second
)

// Do runs a job once and decides what becomes of it.
func (w *Worker) Do(ctx context.Context, j Job) Outcome {
	lane, ok := w.Lanes[j.Ecosystem]
	if !ok {
		return Outcome{Result: Failed, Reason: "no mirror is configured for " + j.Ecosystem}
	}
	err := w.run(ctx, lane, j)
	o := w.judge(ctx, err)
	w.Metrics.MirrorJob(string(o.Result))
	return o
}

// errHeld ends a run whose file the target holds.
var errHeld = errors.New("held")

// run takes a job's steps. The first look at the target needs no public authority and runs during a
// cooldown as well (R59); it also finds what an earlier run published without living to say so.
func (w *Worker) run(ctx context.Context, lane Lane, j Job) error {
	if err := w.step(StepProbe, func() error {
		held, err := lane.Target.Holds(ctx, j)
		if held && err == nil {
			err = errHeld
		}
		return err
	}); err != nil {
		return err
	}
	var c *gate.Copy
	if err := w.step(StepFetch, func() (err error) {
		c, err = lane.Source.Fetch(ctx, j.Package, j.File, lane.Target.Base())
		return err
	}); err != nil {
		return err
	}
	defer c.Body.Close()
	var f *Spooled
	if err := w.step(StepVerify, func() (err error) {
		f, err = w.spool(c)
		return err
	}); err != nil {
		return err
	}
	defer f.Close()
	release, err := w.packages.enter(ctx, j.Ecosystem+":"+j.Package)
	if err != nil {
		return err
	}
	defer release()
	return w.step(StepPublish, func() error { return lane.Target.Put(ctx, j, c, f) })
}

func (w *Worker) step(s Step, do func() error) error {
	w.At("-" + string(s))
	err := do()
	w.At("+" + string(s))
	return err
}

// diskPause is how long a job waits whose file found no room on the disk.
const diskPause = time.Minute

// judge is the one table from the end of a run to what becomes of the job.
func (w *Worker) judge(ctx context.Context, err error) Outcome {
	if err == nil {
		return Outcome{Result: Published}
	}
	if errors.Is(err, errHeld) || errors.Is(err, ErrPresent) {
		return Outcome{Result: Present}
	}
	o := Outcome{Result: Failed, Reason: err.Error()}
	if errors.Is(ctx.Err(), context.Canceled) { // the worker stops, which is not the job's fault
		return Outcome{Result: Snoozed, Reason: "the worker stopped"}
	}
	e, ok := errors.AsType[*gate.Unavailable](err)
	if ok && (e.Cooldown || e.Crowded) { // clients go first
		o.Result, o.Wait = Snoozed, w.afterClients(e)
	} else if e, ok := errors.AsType[*Postponed](err); ok {
		o.Result, o.Wait = Snoozed, e.Delay
	} else if e, ok := errors.AsType[*gate.Denied](err); ok && e.Verdict.Temporary {
		// for want of data (R99)
		o.Result, o.Wait = Snoozed, firstRetry
	} else if durable.IsDisk(err) { // which is not the job's fault
		o.Result, o.Wait = Snoozed, diskPause
	} else if is[*gate.Denied](err) || is[*gate.NotFound](err) {
		o.Result = Dropped
	} else if permanent(err) || is[*gate.Mismatch](err) || is[*gate.Refused](err) || is[*Rejected](err) || is[*Unfit](err) {
		o.Final = true
	}
	return o
}

// permanent reports a listing that was answered with a status that will not change by asking again
// (C50).
func permanent(err error) bool {
	e, ok := errors.AsType[*gate.BadUpstream](err)
	return ok && e.Status >= 300 && e.Status < 500
}

// afterClients is when a job may ask a cooling or crowded authority again (R61): when that is over,
// and clients have had their chance to be the probe.
func (w *Worker) afterClients(e *gate.Unavailable) time.Duration {
	if e.Probing {
		return e.Wait + time.Duration(w.Rand(int64(probeSpread)))
	}
	return e.Wait + clientsFirst + time.Duration(w.Rand(int64(spread)))
}

// Unfit is a file that must not be mirrored whatever the target says.
type Unfit struct{ Reason string }

// Error implements error.
func (e *Unfit) Error() string { return e.Reason }

func unfit(format string, args ...any) error { return &Unfit{Reason: fmt.Sprintf(format, args...)} }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
