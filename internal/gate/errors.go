package gate

import (
	"errors"

	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// The errors of a gate are those of internal/refusal, under the names that its callers know.
type (
	// NotFound says that something is really absent.
	NotFound = refusal.NotFound
	// Denied says that no rule admits what was asked for.
	Denied = refusal.Denied
	// Forbidden says that the private upstream refused the caller's credential.
	Forbidden = refusal.Forbidden
	// Unavailable says that the answer is not to be had now and will be later.
	Unavailable = refusal.Unavailable
	// BadUpstream says that an upstream answered with something that cannot be used.
	BadUpstream = refusal.BadUpstream
	// Mismatch and Refused end a copy for the mirror.
	Mismatch = refusal.Mismatch
	Refused  = refusal.Refused
)

func isDenial(err error) bool { return is[*Denied](err) || is[*Forbidden](err) || is[*NotFound](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
