package main

import (
	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/cmd/ecluse/gatecmd"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
)

// constructor makes one sub-command. Each lives in a file of its own and lists its exit codes with
// cli.ExitCodes.
type constructor func(*cli.System) *cobra.Command

// commands are the sub-commands beside those of the gate, in the order in which help shows them.
func commands() []constructor {
	return []constructor{
		newRetryAfter,
		newSource,
		newJournal,
		newEmulate,
		newVersion,
	}
}

// newRoot builds the whole command tree around one view of the world.
func newRoot(sys *cli.System) *cobra.Command {
	root := &cobra.Command{
		Use:   "ecluse",
		Short: "The lock between you and a throttled upstream",
		Long: "Écluse stands between you and services that throttle: a policy gate in front of package registries,\n" +
			"and a loader of knowledge sources that never repeats a write and never forgets a requested wait.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(sys.Args)
	root.SetIn(sys.Stdin)
	root.SetOut(sys.Stdout)
	root.SetErr(sys.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{cmd: c, err: err} })
	cli.ExitCodes(root, cli.Done, cli.Usage)
	version, _ := buildIdentity()
	root.AddCommand(gatecmd.Commands(sys, version, ecosystem.All())...)
	for _, make := range commands() {
		root.AddCommand(make(sys))
	}
	markUsage(root)
	return root
}

// run executes the command line of sys and returns the exit code, having reported any error to the
// user.
func run(sys *cli.System) int {
	return int(report(sys, newRoot(sys).ExecuteContext(sys.Context)))
}
