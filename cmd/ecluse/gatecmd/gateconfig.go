package gatecmd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
	"github.com/ecluse-gate/ecluse/internal/npm"
)

// gateConfig are the flags by which commands of the gate find their configuration.
type gateConfig struct {
	file      string
	overrides map[string]*string // by key path
	cmd       *cobra.Command
}

// addConfigFlag gives c the flag that names the file.
func addConfigFlag(c *cobra.Command) *gateConfig {
	g := &gateConfig{cmd: c, overrides: map[string]*string{}}
	c.Flags().StringVar(&g.file, "config", "", "configuration `FILE` (YAML)")
	return g
}

// addOverrides gives the command the flags that override the file.
func (g *gateConfig) addOverrides() {
	for _, f := range []struct{ flag, key, usage string }{
		{"listen", "listen", "serve clients on `HOST:PORT`"},
		{"admin", "admin", "status page, API and metrics on `HOST:PORT`; \"\" turns them off"},
		{"data", "dataDir", "keep state in `DIR`"},
		{"npm", "mounts.npm.public", "public npm registry `URL` (default: what npm is configured with)"},
		{"pypi", "mounts.pypi.public", "public PyPI index `URL`"},
	} {
		g.overrides[f.flag] = g.cmd.Flags().String(f.flag, "", f.usage)
		g.cmd.Flags().SetAnnotation(f.flag, configKey, []string{f.key}) //nolint:errcheck // fails only for flags that do not exist
	}
}

// configKey annotates a flag with the key that it overrides.
const configKey = "ecluse_config_key"

// load merges all layers as every command of the gate does, so that check cannot disagree with
// serve.
func (g *gateConfig) load(ctx context.Context, sys *cli.System) (*config.Config, error) {
	flags := map[string]string{}
	for name, value := range g.overrides {
		if f := g.cmd.Flags().Lookup(name); f.Changed {
			flags[f.Annotations[configKey][0]] = *value
		}
	}
	return config.Load(ctx, config.Options{
		File: g.file, Environ: sys.Environ, Flags: flags, Ecosystems: ecosystem.All(),
		Tools: map[string]func(context.Context) (string, error){
			npm.Ecosystem: func(ctx context.Context) (string, error) { return npmRegistry(ctx, sys) },
		},
	})
}

// npmRegistry asks npm on this machine for its registry.
func npmRegistry(ctx context.Context, sys *cli.System) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "config", "get", "registry")
	cmd.Env = sys.Environ
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("npm is not installed")
	case ctx.Err() != nil:
		return "", fmt.Errorf("npm config get registry: %v", context.Cause(ctx))
	case err != nil:
		return "", fmt.Errorf("npm config get registry: %v", err)
	}
	return strings.TrimSpace(string(out)), nil
}
