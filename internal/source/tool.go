// Package source creates a File knowledge source and uploads its files, under a plan that a person
// approved, so that it can be proved later what was done: plan, approve, apply, verify, resume.
//
// What each outcome of a request means and what may happen next is decided here, and nowhere else.
// A write is never repeated, except once after a 429 that was received for an upload; a write whose
// outcome is unknown stays unknown until the service shows the file exactly as it was approved. A
// restriction of the service that is in the journal is kept by every later run, whatever was
// approved since.
//
// The run that creates, the run that continues and the run that only looks use the same code and
// differ in the journal they start from.
package source

import (
	"context"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/recovery"
)

// Options make a Tool. Connect is required.
type Options struct {
	// Connect makes a client of a service with this recorder and clock. It must not send anything.
	Connect func(search.Service, search.Recorder) (*search.Client, error)
	// Emulator allows a loopback endpoint.
	Emulator bool
	// Report makes the progress report of a workflow; nil means none.
	Report func(workflow string) *progress.Reporter
	// Clock replaces the real clocks, in tests only (S37). Replace all of them or none.
	Clock recovery.Clock
	// Disk stands in for the steps of every journal write, in tests only; see journal.Options.
	Disk func(step, name string, call func() error) error
	// NoQueueRetry forbids the one repetition that a received 429 would allow (S80).
	NoQueueRetry bool
}

// disk is Disk for a folder that is no journal.
func (o Options) disk() durable.Options {
	if o.Disk == nil {
		return durable.Options{}
	}
	return durable.Options{Around: func(step durable.Step, name string, call func() error) error {
		return o.Disk(string(step), name, call)
	}}
}

// Tool runs workflows, one at a time.
type Tool struct {
	Options
}

// New fills in the real clocks.
func New(o Options) *Tool {
	if o.Clock.Now == nil {
		start := time.Now()
		o.Clock = recovery.Clock{
			Now:     time.Now,
			Elapsed: func() time.Duration { return time.Since(start) },
			Sleep:   sleep,
		}
	}
	if o.Report == nil {
		o.Report = func(string) *progress.Reporter { return nil }
	}
	return &Tool{o}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// allowed refuses a loopback endpoint without --emulator.
func (t *Tool) allowed(endpoint string) error {
	if t.Emulator {
		return nil
	}
	return plan.Loopback(endpoint)
}

// contextOf is the account behind a token, as far as the token says.
func contextOf(who search.Identity, emulator bool) plan.Context {
	c := plan.Context{TenantID: who.TenantID, CloudName: "AzureCloud", Principal: plan.Principal{Name: who.Name, Type: who.Kind}}
	if c.Principal.Name == "" {
		c.Principal.Name = who.ObjectID
	}
	if emulator {
		c.CloudName = "Emulator"
	}
	return c
}
