package gatecmd

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ecluse-gate/ecluse/internal/app"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

func newServe(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gate",
		Long: "Runs the gate in front of package registries: private first, public under the rules, and one honest cooldown for each\n" +
			"upstream authority. Prints its addresses, and stops on SIGTERM after draining the requests in flight. SIGHUP takes\n" +
			"over changed tokens, rules, advisories and help message, and logs which other changed settings need a restart; an\n" +
			"invalid configuration changes nothing.",
		Args: cobra.NoArgs,
	}
	gate := addConfigFlag(c, ecosystems)
	gate.addOverrides()
	noWorker := c.Flags().Bool("no-worker", false, "queue mirror jobs only, and let ecluse mirror run run them")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := gate.load(c.Context(), sys)
		if err != nil {
			return err
		}
		return gate.serve(c.Context(), sys, cfg, version, !*noWorker)
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

// build makes the gate and what it reports to. Stop flushes and closes them.
func (g *gateConfig) build(ctx context.Context, sys *cli.System, cfg *config.Config, version string) (gate *app.App, stop func(), err error) {
	logger, err := obs.NewLogger(sys.Stderr, cfg.Log.Format, cfg.Log.Level, cli.IsTerminal(sys.Stderr))
	if err != nil {
		return nil, nil, err
	}
	slog.SetDefault(logger) // and with it what libraries write to the standard log
	for _, warning := range cfg.Warnings {
		logger.Warn(warning)
	}
	tracer, stopTraces, err := obs.NewTracerProvider(ctx, urlString(cfg.Telemetry.OTLP), logger)
	if err != nil {
		return nil, nil, err
	}
	roots, err := rootCAs(cfg.Egress.CAPem)
	if err != nil {
		return nil, nil, err
	}
	gate, err = app.Build(app.BuildOptions{ //nolint:contextcheck // what is kept on disk is looked after until Close
		Context: ctx, Config: cfg, Ecosystems: g.ecosystems, Logger: logger, Tracer: tracer.Tracer(obs.TracerName), RootCAs: roots, Version: version,
	})
	if err != nil {
		return nil, nil, err
	}
	return gate, func() {
		gate.Close()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := stopTraces(end); err != nil {
			logger.Warn("traces could not be exported", obs.Err(err))
		}
	}, nil
}

// memoryShare is how much of a container's memory the Go runtime may use before it works harder to
// free some.
const memoryShare = 0.8

// serve runs the gate until ctx ends, and then drains the requests in flight. SIGHUP reloads the
// configuration.
func (g *gateConfig) serve(ctx context.Context, sys *cli.System, cfg *config.Config, version string, worker bool) error {
	hup := make(chan os.Signal, 1)
	defer sys.TakeHangups(hup)()
	gate, stop, err := g.build(ctx, sys, cfg, version)
	if err != nil {
		return err
	}
	defer stop()
	// else Go's own default holds
	if limit, err := memlimit.Set(memlimit.WithRatio(memoryShare)); err == nil && limit > 0 {
		gate.Logger().Debug("memory limit", slog.Int64("bytes", limit))
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stopBackground := context.WithCancel(ctx)
	defer stopBackground() // also when nothing can be served
	background.Go(func() { gate.RunAdvisories(ctx) })
	background.Go(func() { gate.PaceCollector(ctx) })
	stopMirror, err := beginMirror(ctx, cfg, gate, worker, true)
	if err != nil {
		return err
	}
	defer stopMirror()
	endpoints, err := g.listen(ctx, sys, cfg, gate)
	if err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-hup:
				cfg, err := g.load(ctx, sys)
				gate.Reload(ctx, cfg, err)
			case <-ctx.Done():
				return
			}
		}
	}()
	return runEndpoints(ctx, gate, endpoints, cfg.Serve.Drain)
}

// endpoint is one listener with what answers on it.
type endpoint struct {
	listener net.Listener
	server   *http.Server
}

// listen opens every listener before anything is served, and prints their addresses.
func (g *gateConfig) listen(ctx context.Context, sys *cli.System, cfg *config.Config, gate *app.App) ([]endpoint, error) {
	var endpoints []endpoint
	for _, f := range []struct {
		key, addr string
		handler   http.Handler
	}{
		{"listen", cfg.Listen, gate.Handler()},
		{"admin", cfg.Admin, gate.Admin()},
	} {
		if f.addr == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.addr)
		if err != nil {
			for _, open := range endpoints {
				_ = open.listener.Close()
			}
			return nil, fmt.Errorf("%s %s: %v; choose another address with --%s or the setting %s", f.key, f.addr, err, f.key, f.key)
		}
		endpoints = append(endpoints, endpoint{l, &http.Server{
			Handler: f.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
			ConnContext: app.KeepConn,
		}})
	}
	for _, line := range g.addresses(cfg, endpoints) {
		fmt.Fprintln(sys.Stdout, line)
	}
	return endpoints, nil
}

// addresses are what people are told of the listeners: where each mount is, and behind the first of
// the ecosystems the status page.
func (g *gateConfig) addresses(cfg *config.Config, endpoints []endpoint) (lines []string) {
	for i, e := range g.ecosystems {
		if cfg.Mount(e.Name).Enabled {
			lines = append(lines, fmt.Sprintf("%s at http://%s/%s%s", e.Words.Served, endpoints[0].listener.Addr(), e.Name, e.Words.Entry))
		}
		if i == 0 && cfg.Admin != "" {
			lines = append(lines, fmt.Sprintf("status page at http://%s/", endpoints[len(endpoints)-1].listener.Addr()))
		}
	}
	return lines
}

// runEndpoints serves until ctx ends, then drains.
func runEndpoints(ctx context.Context, gate *app.App, endpoints []endpoint, drain time.Duration) error {
	logger := gate.Logger()
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range endpoints {
		f.server.ErrorLog = obs.ServerLog(logger)
		group.Go(func() error {
			if err := f.server.Serve(gate.Metrics().Listener(f.listener, logger)); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		gate.Drain()
		logger.Info("stopping", slog.Float64("drain_seconds", drain.Seconds()))
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		var err error
		for _, f := range endpoints {
			if serr := f.server.Shutdown(end); serr != nil {
				err = errors.Join(err, fmt.Errorf("requests still in flight after %v were aborted", drain), f.server.Close())
			}
		}
		return err
	})
	return group.Wait()
}

// rootCAs adds certificates to the system's.
func rootCAs(pem []byte) (*x509.CertPool, error) {
	if len(pem) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %v", err)
	}
	pool.AppendCertsFromPEM(pem)
	return pool, nil
}

func urlString(u *url.URL) string {
	if u == nil {
		return ""
	}
	return strings.TrimSuffix(u.String(), "/")
}
