package server

import (
	"crypto/x509"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// BuildOptions are a checked configuration and what the process lends to it.
type BuildOptions struct {
	Config  *config.Config
	Logger  *slog.Logger
	Tracer  trace.Tracer
	RootCAs *x509.CertPool // nil: the system's
	Version string
	// Dial replaces the network in tests; nil means the network.
	Dial upstream.DialFunc
}

// Build makes the whole gate from a configuration: one cooldown table for the process, one way out, and the mounts (R29).
func Build(o BuildOptions) (*Server, error) {
	rules, err := policy.New(o.Config.Rules)
	if err != nil {
		return nil, err
	}
	metrics := obs.NewMetrics()
	table := cooldown.New(cooldown.Options{})
	client := upstream.New(upstream.Options{
		Table: table, Metrics: metrics, Logger: o.Logger, Tracer: o.Tracer, UserAgent: "ecluse/" + o.Version,
		RootCAs: o.RootCAs, Hold: o.Config.Serve.Hold, Dial: o.Dial,
	})
	mount := o.Config.Mounts.NPM
	public, err := client.Public(mount.Public, spelling(mount.ScopedPath.Public))
	if err != nil {
		return nil, err
	}
	var private *upstream.Private
	if mount.Private != nil {
		if private, err = client.Private(mount.Private, spelling(mount.ScopedPath.Private)); err != nil {
			return nil, err
		}
	}
	npm := gate.New(gate.Options{
		Ecosystem: npmEcosystem(), Public: public, Private: private,
		DegradePrivate: mount.PrivateFailure == config.Degrade, FirstParty: mount.FirstParty, Policy: rules,
		TTL: o.Config.Cache.TTL, MaxStale: o.Config.Cache.MaxStale, MaxBytes: int64(o.Config.Cache.MaxBytes),
		Metrics: metrics, Logger: o.Logger,
	})
	s := New(Options{
		NPM: npm, Table: table, Metrics: metrics, Logger: o.Logger, Tracer: o.Tracer, HelpMessage: o.Config.Serve.HelpMessage,
		MaxInFlight: o.Config.Serve.MaxInFlight, Wait: o.Config.Serve.Wait, Version: o.Version,
	})
	if u := o.Config.PublicURL; u != nil {
		s.opts.PublicURL = strings.TrimSuffix(u.String(), "/")
	}
	s.close = client.Close
	return s, nil
}

// Close drops idle connections to the upstreams.
func (s *Server) Close() { s.close() }

func spelling(word string) upstream.Spelling { return upstream.Spelling(word == config.PathLiteral) }
