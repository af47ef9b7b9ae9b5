package gatecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

// explain is one call of the command.
type explain struct {
	sys     *cli.System
	gate    *gateConfig
	version string

	offline, asJSON, exitCode bool
}

func newExplain(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain " + strings.Join(ecosystems.Known().Names(), ":NAME[@VERSION]|") + ":NAME[@VERSION]...",
		Short: "Show which versions the rules admit, and why",
		Long: "Shows for each version the rule that decides, its reason, and the time from which a version will be admitted.\n\n" +
			"The gate that runs is asked (its admin API), so that the answer is what its clients meet; a line on stderr says so. Without\n" +
			"one, or with --offline, --config or a flag that overrides it, the packages' public listings are read once and judged by\n" +
			"that configuration; a cooldown in its data folder is respected, and first-party names are asked of nobody.",
		Args: cobra.MinimumNArgs(1),
	}
	e := &explain{sys: sys, version: version, gate: addConfigFlag(c, ecosystems)}
	e.gate.addOverrides()
	c.Flags().BoolVar(&e.asJSON, "json", false, "print one JSON list")
	c.Flags().BoolVar(&e.offline, "offline", false, "judge by the configuration alone; ask no running gate")
	c.Flags().BoolVar(&e.exitCode, "exit-code", false, fmt.Sprintf("exit with %d when any version is denied", cli.Refused))
	c.RunE = func(c *cobra.Command, args []string) error { return e.run(c, args) }
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Waiting, cli.Usage, cli.Interrupted)
	return c
}

// judge gives the verdicts on one argument.
type judge func(ctx context.Context, arg string) ([]admin.Explanation, error)

func (e *explain) run(c *cobra.Command, args []string) error {
	cfg, err := e.gate.load(c.Context(), e.sys)
	if err != nil {
		return err
	}
	ask, stop, err := e.judge(c, cfg)
	if err != nil {
		return err
	}
	defer stop()
	rows, failed := e.all(c.Context(), ask, args)
	if err := c.Context().Err(); err != nil {
		return err
	}
	if err := e.write(rows); err != nil {
		return err
	}
	if len(failed) > 0 {
		for _, err := range failed[1:] {
			fmt.Fprintf(e.sys.Stderr, "ecluse: %s\n", visible.Text(err.Error()))
		}
		return failed[0]
	}
	denied := func(r admin.Explanation) bool { return !r.Admit && !r.Hidden }
	if e.exitCode && slices.ContainsFunc(rows, denied) {
		return &cli.ExitError{Code: cli.Refused}
	}
	return nil
}

// all judges every argument. One that cannot be judged loses no other its verdict.
func (e *explain) all(ctx context.Context, ask judge, args []string) (rows []admin.Explanation, failed []error) {
	rows = []admin.Explanation{}
	for _, arg := range args {
		found, err := ask(ctx, arg)
		if ctx.Err() != nil {
			return rows, failed
		}
		if err != nil {
			failed = append(failed, named(arg, err))
			name, version, _ := cutVersion(arg)
			found = []admin.Explanation{{Package: name, Version: version, Error: err.Error()}}
		}
		rows = append(rows, found...)
	}
	return rows, failed
}

// named says which argument an error is about.
func named(arg string, err error) error {
	if _, ok := errors.AsType[*admin.BadTarget](err); ok {
		return &cli.ExitError{Code: cli.Usage, Err: err}
	}
	return fmt.Errorf("explain %s: %w", arg, err)
}

func cutVersion(arg string) (name, version string, ok bool) {
	if i := strings.LastIndexByte(arg, '@'); i > 0 && arg[i-1] != ':' {
		return arg[:i], arg[i+1:], true
	}
	return arg, "", false
}

// judge finds who answers: the running gate, or this process by its own configuration.
func (e *explain) judge(c *cobra.Command, cfg *config.Config) (ask judge, stop func(), err error) {
	if cfg.Admin != "" && !e.alone(c) {
		at := "http://" + cfg.Admin
		ask = func(ctx context.Context, arg string) ([]admin.Explanation, error) {
			return askExplain(ctx, at, cfg.AdminToken.Reveal(), arg)
		}
		if err := greet(c.Context(), at, cfg.AdminToken.Reveal()); err == nil {
			fmt.Fprintf(e.sys.Stderr, "asked the gate at %s\n", cfg.Admin)
			return ask, func() {}, nil
		} else if !errors.Is(err, errNoGate) {
			return nil, nil, err
		}
		fmt.Fprintf(e.sys.Stderr, "no gate answers at %s; judged by the configuration alone\n", cfg.Admin)
	}
	cfg.Artifacts.MaxBytes, cfg.Cache.DiskBytes = 0, 0 // it leaves the folder to a running gate
	g, done, err := e.gate.build(c.Context(), e.sys, cfg, e.version)
	if err != nil {
		return nil, nil, err
	}
	if err := g.ReadAdvisories(c.Context()); err != nil {
		done()
		return nil, nil, fmt.Errorf("read the advisories: %w", err)
	}
	return g.Explain, done, nil
}

// alone reports that a configuration was named for this call: a running gate may have another.
func (e *explain) alone(c *cobra.Command) bool {
	if e.offline || c.Flags().Changed("config") {
		return true
	}
	for flag := range e.gate.overrides {
		if flag != "admin" && c.Flags().Changed(flag) {
			return true
		}
	}
	return false
}

func (e *explain) write(rows []admin.Explanation) error {
	if e.asJSON {
		enc := json.NewEncoder(e.sys.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(rows)
	}
	known := slices.DeleteFunc(slices.Clone(rows), func(r admin.Explanation) bool { return r.Error != "" })
	if len(known) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(e.sys.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tVERDICT\tRULE\tREASON")
	for _, r := range known {
		verdict, what := "denied", r.Package+"@"+r.Version
		if r.Admit {
			verdict = "admitted"
		}
		if r.File != "" {
			what += " " + r.File
		}
		if r.Hidden {
			verdict = "hidden"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", what, verdict, r.Rule, r.Reason)
	}
	return w.Flush()
}
