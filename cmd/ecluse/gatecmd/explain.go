package gatecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

func newExplain(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain " + strings.Join(ecosystems.Known().Names(), ":NAME[@VERSION]|") + ":NAME[@VERSION]...",
		Short: "Show which versions the rules admit, and why",
		Long: "Reads the packages' public listings once and judges each version exactly as a running gate with this configuration does:\n" +
			"the rule that decides, its reason, and the time from which a version will be admitted.",
		Args: cobra.MinimumNArgs(1),
	}
	gate := addConfigFlag(c, ecosystems)
	gate.addOverrides()
	asJSON := c.Flags().Bool("json", false, "print one JSON list")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := gate.load(c.Context(), sys)
		if err != nil {
			return err
		}
		cfg.Artifacts.MaxBytes, cfg.Cache.DiskBytes = 0, 0 // it leaves the folder to a running gate
		g, stop, err := gate.build(c.Context(), sys, cfg, version)
		if err != nil {
			return err
		}
		defer stop()
		if err := g.ReadAdvisories(c.Context()); err != nil {
			return fmt.Errorf("read the advisories: %w", err)
		}
		rows := []admin.Explanation{}
		for _, arg := range args {
			found, err := g.Explain(c.Context(), arg)
			if _, ok := errors.AsType[*admin.BadTarget](err); ok {
				return &cli.ExitError{Code: cli.Usage, Err: err}
			} else if err != nil {
				return fmt.Errorf("explain %s: %w", arg, err)
			}
			rows = append(rows, found...)
		}
		if *asJSON {
			enc := json.NewEncoder(sys.Stdout)
			enc.SetIndent("", "  ")
			return enc.Encode(rows)
		}
		return writeExplanations(sys, rows)
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Waiting, cli.Usage, cli.Interrupted)
	return c
}

func writeExplanations(sys *cli.System, rows []admin.Explanation) error {
	w := tabwriter.NewWriter(sys.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tVERDICT\tRULE\tREASON")
	for _, r := range rows {
		verdict, what := "denied", r.Package+"@"+r.Version
		if r.Admit {
			verdict = "admitted"
		}
		if r.File != "" {
			what += " " + r.File
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", what, verdict, r.Rule, r.Reason)
	}
	return w.Flush()
}
