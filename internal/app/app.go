// Package app puts the gate together: it makes every part from the configuration, connects them,
// and hands the whole to the command. It decides nothing while the gate runs.
package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/server"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// App is a gate that is ready to serve. It is safe for concurrent use.
type App struct {
	server    *server.Server
	admin     *admin.Admin
	mounts    serving.Mounts
	documents *documents.Memory
	room      *quota.Budget
	metrics   *obs.Metrics
	logger    *slog.Logger
	rules     *rulebook
	lanes     map[string]mirror.Lane
	queue     *queue
	own       *keyring
	started   *config.Config // what the gate was built from
	reloading sync.Mutex     // held by Reload
	guards    guards         // as they are now; guarded by reloading
	close     func()
}

// Handler is what clients reach.
func (a *App) Handler() http.Handler { return a.server.Handler() }

// Admin is what operators reach.
func (a *App) Admin() http.Handler { return server.Paced(a.admin.Handler()) }

// KeepConn is what the servers of both need as their ConnContext, to know how far a client is.
func KeepConn(ctx context.Context, c net.Conn) context.Context { return server.KeepConn(ctx, c) }

// Drain makes readiness fail, so that a balancer sends no new clients while the last requests end.
func (a *App) Drain() { a.server.Drain() }

// Close ends what runs in the background and drops idle connections to the upstreams. No request
// may be at work.
func (a *App) Close() { a.close() }

// Explain judges "ECOSYSTEM:NAME[@VERSION]" as the mounts do.
func (a *App) Explain(ctx context.Context, text string) ([]admin.Explanation, error) {
	return a.admin.Explain(ctx, text)
}

// Logger is the gate's logger.
func (a *App) Logger() *slog.Logger { return a.logger }

// Metrics are the gate's.
func (a *App) Metrics() *obs.Metrics { return a.metrics }
