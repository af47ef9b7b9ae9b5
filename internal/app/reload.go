package app

import (
	"context"
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

func (a *App) reload(ctx context.Context, cfg *config.Config) error {
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
	return nil
}
