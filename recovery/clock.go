package recovery

import (
	"context"
	"time"
)

// Clock is the time source of a sequence. Every nil function stands for the real one; replace all
// of them or none.
type Clock struct {
	// Now is the wall clock. Retry-After dates are compared with it.
	Now func() time.Time
	// Elapsed is a clock that never goes back, since any fixed moment. Budgets are measured with
	// it.
	Elapsed func() time.Duration
	// Sleep returns after d, or earlier with an error when ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
}

// orReal fills in the real clocks. This is the only place of the package where time is read or
// passes.
func (c Clock) orReal() Clock {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default for callers that bring no clock
	}
	if c.Elapsed == nil {
		origin := time.Now()                                           //nolint:forbidigo // as above
		c.Elapsed = func() time.Duration { return time.Since(origin) } //nolint:forbidigo // as above
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d) //nolint:forbidigo // as above
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
