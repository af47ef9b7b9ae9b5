package gatecmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// gateConfig are the flags by which commands of the gate find their configuration.
type gateConfig struct {
	file       string
	overrides  map[string]*string // by key path
	cmd        *cobra.Command
	ecosystems serving.Ecosystems
}

// addConfigFlag gives c the flag that names the file.
func addConfigFlag(c *cobra.Command, ecosystems serving.Ecosystems) *gateConfig {
	g := &gateConfig{cmd: c, ecosystems: ecosystems, overrides: map[string]*string{}}
	c.Flags().StringVar(&g.file, "config", "", "configuration `FILE` (YAML)")
	return g
}

// addOverrides gives the command the flags that override the file.
func (g *gateConfig) addOverrides() {
	type override struct{ flag, key, usage string }
	flags := []override{
		{"listen", "listen", "serve clients on `HOST:PORT`"},
		{"admin", "admin", "status page, API and metrics on `HOST:PORT`; \"\" turns them off"},
		{"data", "dataDir", "keep state in `DIR`"},
	}
	for _, e := range g.ecosystems {
		usage := "public " + e.Words.Upstream + " `URL`"
		if e.Upstream != nil {
			usage += " (default: what " + e.Name + " is configured with)"
		}
		flags = append(flags, override{e.Name, "mounts." + e.Name + ".public", usage})
	}
	for _, f := range flags {
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
	tools := map[string]func(context.Context) (string, error){}
	for _, e := range g.ecosystems {
		if e.Upstream != nil {
			tools[e.Name] = func(ctx context.Context) (string, error) { return e.Upstream(ctx, sys.Environ) }
		}
	}
	return config.Load(ctx, config.Options{
		File: g.file, Environ: sys.Environ, Flags: flags, Ecosystems: g.ecosystems.Known(), Tools: tools,
	})
}
