package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/source"
)

func newSourcePlan(sys *cli.System) *cobra.Command {
	var flags sourceFlags
	var request, out string
	c := &cobra.Command{
		Use:   "plan --request REQUEST.json --out PLAN.json",
		Short: "Check the files and the service, and write a plan for approval",
		Long: "Checks the request, the local files and the service (reads only), and writes the plan. If the source already\n" +
			"exists exactly as requested and with all files, there is nothing to approve: the status is reused.",
		Args: cobra.NoArgs,
		RunE: flags.run(sys, func(c *cobra.Command, tool *source.Tool, _ []string) error {
			data, err := readDocument(c, request)
			if err != nil {
				return err
			}
			if refused := replaceable(c.Name(), out, false); refused != nil {
				return flags.conclude(sys, refused)
			}
			envelope, outcome := tool.Plan(c.Context(), data)
			return flags.planned(sys, out, envelope, outcome)
		}),
	}
	c.Flags().StringVar(&request, "request", "", "the request document")
	c.Flags().StringVar(&out, "out", "", "output file of the plan")
	require(c, "request", "out")
	flags.add(c)
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage, cli.Interrupted)
	return c
}

// planned writes an envelope, if there is one, before it prints the outcome that speaks of it.
func (f *sourceFlags) planned(sys *cli.System, out string, envelope []byte, outcome *source.Outcome) error {
	if envelope != nil && outcome.Status == source.StatusPlanned {
		outcome = writePlan(sys, out, envelope, false, outcome)
	}
	return f.conclude(sys, outcome)
}

func newSourceApprove(sys *cli.System) *cobra.Command {
	var out, yes string
	c := &cobra.Command{
		Use:   "approve PLAN.json --out APPROVED.json [--yes FINGERPRINT]",
		Short: "Show a plan in words and approve it",
		Long: "Describes the plan on stderr and asks on the terminal. --yes replaces the answer: at least the\n" +
			"first 8 hexadecimal digits of the fingerprint. Only the confirmation changes; nothing is sent.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := readDocument(c, args[0])
			if err != nil {
				return err
			}
			if refused := replaceable(c.Name(), out, true); refused != nil {
				return conclude(sys, refused)
			}
			approved, outcome := source.Approve(data, func(words, fingerprint string) error {
				fmt.Fprint(sys.Stderr, words)
				return agreed(sys, yes, fingerprint)
			})
			if approved != nil {
				outcome = writePlan(sys, out, approved, true, outcome)
			}
			return conclude(sys, outcome)
		},
	}
	c.Flags().StringVar(&out, "out", "", "output file of the approved plan")
	c.Flags().StringVar(&yes, "yes", "", "the fingerprint, or at least its first 8 hexadecimal digits, instead of an answer")
	require(c, "out")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

// agreed asks a person, or takes the fingerprint's beginning for the answer.
func agreed(sys *cli.System, yes, fingerprint string) error {
	digits := strings.TrimPrefix(fingerprint, "sha256:")
	if yes != "" {
		given := strings.TrimPrefix(yes, "sha256:")
		if len(given) < 8 || !strings.HasPrefix(digits, given) {
			return fmt.Errorf("--yes %.80q does not match the plan's fingerprint; give at least its first 8 digits", yes)
		}
		return nil
	}
	if !cli.IsTerminal(sys.Stdin) {
		return errors.New("there is no terminal to ask on; use --yes with the first digits of the fingerprint")
	}
	fmt.Fprintf(sys.Stderr, "\nApprove this plan? Type the first 8 digits of the fingerprint (%s): ", digits[:8])
	answer, err := bufio.NewReader(io.LimitReader(sys.Stdin, 1024)).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != digits[:8] {
		return errors.New("not approved")
	}
	return nil
}

func newSourceApply(sys *cli.System) *cobra.Command {
	var flags sourceFlags
	var places source.Places
	c := &cobra.Command{
		Use:   "apply APPROVED.json [--journal DIR --receipts DIR]",
		Short: "Carry out an approved plan",
		Long: "Carries out an approved plan. A creation needs two private folders, which are created when absent: an empty one\n" +
			"for the journal, and one for the receipts. A continuation finds its journal in the plan. The outcome is also kept\n" +
			"in a private file beside the journal, DIR.outcome-TIME-apply.json, and in --out.",
		Args: cobra.ExactArgs(1),
		RunE: flags.run(sys, func(c *cobra.Command, tool *source.Tool, args []string) error {
			data, err := readDocument(c, args[0])
			if err != nil {
				return err
			}
			if places.Journal, err = absolute(places.Journal); err != nil {
				return err
			}
			if places.Receipts, err = absolute(places.Receipts); err != nil {
				return err
			}
			return flags.conclude(sys, tool.Apply(c.Context(), data, places))
		}),
	}
	c.Flags().StringVar(&places.Journal, "journal", "", "the private folder of the journal")
	c.Flags().StringVar(&places.Receipts, "receipts", "", "the private folder of the receipts")
	flags.add(c)
	flags.addOut(c)
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Partial, cli.Waiting, cli.Usage, cli.Interrupted)
	return c
}

func newSourceVerify(sys *cli.System) *cobra.Command {
	var flags sourceFlags
	var dir string
	c := &cobra.Command{
		Use:   "verify APPROVED.json --journal DIR",
		Short: "Check whether everything is as planned",
		Long:  "Reads the journal and the service, and reports whether the source and every file are as approved. Nothing is\nwritten to the service.",
		Args:  cobra.ExactArgs(1),
		RunE: flags.run(sys, func(c *cobra.Command, tool *source.Tool, args []string) error {
			data, err := readDocument(c, args[0])
			if err != nil {
				return err
			}
			if dir, err = absolute(dir); err != nil {
				return err
			}
			return flags.conclude(sys, tool.Verify(c.Context(), data, dir))
		}),
	}
	c.Flags().StringVar(&dir, "journal", "", "the private folder of the journal")
	require(c, "journal")
	flags.add(c)
	flags.addOut(c)
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Partial, cli.Waiting, cli.Usage, cli.Interrupted)
	return c
}

func newSourceResume(sys *cli.System) *cobra.Command {
	var flags sourceFlags
	var dir, out, localRoot string
	c := &cobra.Command{
		Use:   "resume --journal DIR --out PLAN.json",
		Short: "Plan the upload of the files that an interrupted run never attempted",
		Long: "Reads the journal, honours any wait that the service asked for, checks the service (reads only), and writes a plan for\n" +
			"the files that were never attempted. Approve and apply it like any other; apply finds the journal in the plan.",
		Args: cobra.NoArgs,
		RunE: flags.run(sys, func(c *cobra.Command, tool *source.Tool, _ []string) error {
			dir, err := absolute(dir)
			if err != nil {
				return err
			}
			root, err := absolute(localRoot)
			if err != nil {
				return err
			}
			if refused := replaceable(c.Name(), out, false); refused != nil {
				return flags.conclude(sys, refused)
			}
			envelope, outcome := tool.Resume(c.Context(), dir, root)
			return flags.planned(sys, out, envelope, outcome)
		}),
	}
	c.Flags().StringVar(&dir, "journal", "", "the private folder of the journal")
	c.Flags().StringVar(&out, "out", "", "output file of the plan")
	c.Flags().StringVar(&localRoot, "local-root", "", "folder of the files, if not the one in the plan")
	require(c, "journal", "out")
	flags.add(c)
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Partial, cli.Waiting, cli.Usage, cli.Interrupted)
	return c
}
