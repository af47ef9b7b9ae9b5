package app

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

// Reload takes over what may change while the gate serves, from a configuration that was read anew:
// tokens, the gate's own credentials, rules, advisories and the help message. Every other key that
// differs from the start is named: it needs a restart. A problem changes nothing, and is logged.
func (a *App) Reload(ctx context.Context, cfg *config.Config, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if err == nil {
		err = a.reload(ctx, cfg)
	}
	if err != nil {
		a.logger.Error("reload failed; keeping the current rules", obs.Err(err))
		return
	}
	for _, warning := range cfg.Warnings {
		a.logger.Warn(warning)
	}
	a.logger.Info("rules reloaded", slog.Int("rules", len(cfg.Rules)), slog.Int("tokens", len(cfg.Auth.Tokens)))
	if keys := a.started.NeedRestart(cfg); len(keys) > 0 {
		a.logger.Warn("changed settings need a restart; the gate goes on with their old values", slog.Any("keys", keys))
	}
}

// errOpens is the refusal to take tokens away altogether: a configuration file that was emptied or
// cut would open the gate, and what its own credentials lead to, to everybody.
var errOpens = errors.New("the new configuration asks for no token where one is asked for now; a reload does not open the gate: restart it if that is meant")

// guards are the doors that ask for a token.
type guards struct{ clients, admin bool }

func guardsOf(cfg *config.Config) guards {
	return guards{clients: len(cfg.Auth.Tokens) > 0, admin: cfg.AdminToken.Reveal() != ""}
}

func (a *App) reload(ctx context.Context, cfg *config.Config) error {
	next := guardsOf(cfg)
	if a.guards.clients && !next.clients || a.guards.admin && !next.admin {
		return errOpens
	}
	rules, err := policy.New(cfg.Rules, a.mounts.Ecosystems().Known())
	if err != nil {
		return err
	}
	if err := a.rules.follow(ctx, cfg.Advisories); err != nil {
		return err
	}
	a.own.follow(a.started, cfg)
	a.server.SetAccess(a.own.access(cfg))
	a.admin.SetToken(cfg.AdminToken.Reveal())
	a.rules.use(rules)
	a.guards = next
	return nil
}
