// Package admin is the gate as its operators see it: metrics, the status API and its page, what
// other rules would change, and why a version is admitted or denied. Looking changes nothing
// (tc-072).
package admin

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/advisory"
	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/overlap"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Options make an Admin.
type Options struct {
	Mounts serving.Mounts
	// Rules returns the rules in force.
	Rules func() *policy.Set
	// Documents is the memory of all mounts.
	Documents *documents.Memory
	Table     *cooldown.Table
	Metrics   *obs.Metrics
	Logger    *slog.Logger
	// Advisories returns the advisory data, nil while there is no source.
	Advisories func() *advisory.Store
	// Queue reads the status of the mirror's queue; enabled is false while there is none.
	Queue func(context.Context) (status mirror.Status, enabled bool, err error)
	// Overlaps are the names that both the private and the public registries have, or may have.
	Overlaps func() []overlap.Entry
	// Credential is the gate's own for the private registry of an ecosystem; "" is none.
	Credential func(ecosystem string) string
	// Version is shown by the status page.
	Version string
	// Listen is the host:port that is configured for the listener, whose host requests may name.
	Listen string
	// Token is what every request must carry; "" means that none is asked for.
	Token string
}

// Admin holds the handlers. It is safe for concurrent use.
type Admin struct {
	opts  Options
	token atomic.Pointer[[sha256.Size]byte] // nil: none is asked for
}

// New returns an Admin that is ready to serve.
func New(o Options) *Admin {
	a := &Admin{opts: o}
	a.SetToken(o.Token)
	return a
}
