package cooldown

import (
	"errors"
	"fmt"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// Refusal is the answer "not now": nothing was sent. It is an error, and it survives http.Client
// inside the client's own error.
type Refusal struct {
	Authority Authority
	// Wait is how long to wait before asking again, more than 0 and at most MaxDelay: the rest of
	// the cooldown, or ProbeWait.
	Wait time.Duration
	// Probing reports that the cooldown itself is over and that another request is finding out
	// whether the authority has recovered.
	Probing bool
	// TableFull reports that this authority is unknown and the table full: too many others are
	// cooling.
	TableFull bool
}

// Error names the authority, the reason and the wait.
func (r *Refusal) Error() string {
	switch {
	case r.Probing:
		return fmt.Sprintf("%v is throttled: a recovery probe is in progress; try again in %d s", r.Authority, r.RetryAfterSeconds())
	case r.TableFull:
		return fmt.Sprintf("%v is refused: too many other authorities are throttled; try again in %d s", r.Authority, r.RetryAfterSeconds())
	}
	return fmt.Sprintf("%v is throttled; try again in %d s", r.Authority, r.RetryAfterSeconds())
}

// RetryAfterSeconds is Wait in whole seconds for a Retry-After field: rounded up, at least 1.
func (r *Refusal) RetryAfterSeconds() int64 { return max(1, retryafter.Seconds(r.Wait)) }

// AsRefusal finds the Refusal in an error's chain.
func AsRefusal(err error) (*Refusal, bool) { return errors.AsType[*Refusal](err) }

// IsProbeWait reports whether err is a Refusal because of a probe in flight: the wait is short, and
// the outcome unknown.
func IsProbeWait(err error) bool {
	r, ok := AsRefusal(err)
	return ok && r.Probing
}
