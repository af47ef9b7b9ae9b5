package gatecmd

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

func newCheck(sys *cli.System, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration and print the resolved settings",
		Long: "Merges the configuration exactly as `ecluse serve` does (flags over environment over file over defaults), reports\n" +
			"every problem at once, and prints each setting with the layer it came from. Nothing is started.",
		Args: cobra.NoArgs,
	}
	gate := addConfigFlag(c, ecosystems)
	gate.addOverrides()
	admin := c.Flags().String("preview", "", "ask the running gate at this admin `URL` what the new rules would change, instead of printing settings")
	locks := c.Flags().StringArray("lockfile", nil, "list what in this lock `FILE` a client would fetch past the gate; may be given more than once")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := gate.load(c.Context(), sys)
		if err != nil {
			return err
		}
		if len(*locks) > 0 {
			return checkLockfiles(sys, cfg, ecosystems.LockFiles(), *locks)
		}
		if *admin != "" {
			return preview(c.Context(), sys.Stdout, *admin, cfg)
		}
		return printSettings(sys, cfg, gate.file)
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage, cli.Interrupted)
	return c
}

func printSettings(sys *cli.System, cfg *config.Config, file string) error {
	w := tabwriter.NewWriter(sys.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range cfg.Settings() {
		from := string(s.Layer)
		if s.Layer == config.FromFile {
			from = fmt.Sprintf("%s:%d", file, s.Line)
		} else if s.Layer == config.FromEnv {
			from = s.Source
		}
		value := s.Value
		if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == '#' }) {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(w, "%s:\t%s\t# %s\n", s.Key, value, from)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, warning := range cfg.Warnings {
		fmt.Fprintf(sys.Stderr, "ecluse: warning: %s\n", warning)
	}
	_, err := fmt.Fprintln(sys.Stderr, "the configuration is valid")
	return err
}
