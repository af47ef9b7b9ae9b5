package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/review"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

func newJournal(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "journal",
		Short: "Inspect, verify and move the journal of a run, and resolve interrupted requests",
		Long:  "Works on the journal folder of ecluse source, offline.",
	}
	cli.ExitCodes(c, cli.Done, cli.Usage)
	c.AddCommand(newJournalShow(sys), newJournalVerify(sys), newJournalResolve(sys), newJournalExport(sys), newJournalImport(sys))
	return c
}

func newJournalShow(sys *cli.System) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show DIR",
		Short: "Show the run, its files and restrictions, what blocks it and the next step",
		Long:  "Shows the run, the state of each file, each restriction with its remaining time, what blocks it and the next allowed action.\nNothing is written and nothing is sent.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := showJournal(sys, "journal show", args[0])
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(sys, report)
			} else {
				_, err = fmt.Fprint(sys.Stdout, report.Text())
			}
			return soundness(report, err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalVerify(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check names, wrappers, integrity, bindings, numbering and chain",
		Long:  "Checks the names, wrappers, integrity, bindings, numbering and chain of every file, and lists each fault. The integrity is a\nplain hash: it detects accidents, not forgery.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := showJournal(sys, "journal verify", args[0])
			if err != nil {
				return err
			}
			for _, f := range report.Faults {
				if _, err := fmt.Fprintf(sys.Stdout, "%s %s %s: %s\n", f.Code, visible.Text(orElse(f.Entry, "-")), visible.Text(orElse(f.Field, "-")), visible.Text(f.Reason)); err != nil {
					return err
				}
			}
			if report.Sound {
				_, err = fmt.Fprintf(sys.Stdout, "valid (files: %d, restrictions: %d)\n", len(report.Files), len(report.Restrictions))
			}
			return soundness(report, err)
		},
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func showJournal(sys *cli.System, what, dir string) (*review.Report, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	report, err := review.Show(dir, time.Now())
	if err != nil {
		return nil, conclude(sys, source.RefusedBy(what, err))
	}
	return report, nil
}

func soundness(r *review.Report, err error) error {
	if err == nil && !r.Sound {
		return cli.Exit(cli.Refused, nil)
	}
	return err
}

func printJSON(sys *cli.System, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := sys.Stdout.Write(visible.JSON(b.Bytes()))
	return err
}

func newJournalResolve(sys *cli.System) *cobra.Command {
	var asPlan, endWait bool
	var input, outcome string
	c := &cobra.Command{
		Use:   "resolve DIR (--plan [--outcome WORD] [--end-wait] | --input APPROVED.json)",
		Short: "Record the outcome of an interrupted request, or end a wait that cannot be meant",
		Long: "With --plan, prints a statement about the first unresolved request of the journal, to be approved with ecluse source approve.\n" +
			"With --input, appends the approved statement. The journal then stays blocked until ten minutes after the review, and is free\n" +
			"afterwards for files that were never attempted; an interrupted upload stays unverified.\n\n" +
			"With --plan --end-wait the statement ends a restriction before its time: one that asks for more than a day and cannot be\n" +
			"meant, such as an epoch given as seconds, or one that was received while this machine's clock was wrong. The restriction\n" +
			"stays in the journal as evidence. Nothing else ever shortens a wait.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			if asPlan {
				envelope, err := review.Plan(dir, outcome, endWait, time.Now())
				if err != nil {
					return conclude(sys, source.RefusedBy("journal resolve", err))
				}
				_, err = sys.Stdout.Write(envelope)
				return err
			}
			data, err := readDocument(c, input)
			if err != nil {
				return err
			}
			status, err := review.Resolve(dir, data, time.Now())
			return conclude(sys, source.Resolved(status, err))
		},
	}
	c.Flags().BoolVar(&asPlan, "plan", false, "print the statement for approval")
	c.Flags().StringVar(&outcome, "outcome", "unknown", "what you found: applied, not-applied or unknown")
	c.Flags().StringVar(&input, "input", "", "the approved statement")
	c.Flags().BoolVar(&endWait, "end-wait", false, "with --plan: end a restriction that cannot be meant, or that a wrong clock recorded")
	c.MarkFlagsOneRequired("plan", "input")
	c.MarkFlagsMutuallyExclusive("plan", "input")
	c.MarkFlagsMutuallyExclusive("end-wait", "input")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalExport(sys *cli.System) *cobra.Command {
	var out string
	var withdraw bool
	c := &cobra.Command{
		Use:   "export DIR (--out BUNDLE | --withdraw)",
		Short: "Write a journal to one file, to continue on another machine",
		Long: "Writes a valid journal to one file, for ecluse journal import. From then on this folder refuses work, so that the journal is\n" +
			"used in one place only. An export that failed or was interrupted can be repeated.\n\n" +
			"With --withdraw you state that no other copy of this journal is used and none is newer: the journal goes on in this folder.\n" +
			"That is for a bundle that was not and will not be imported, and for a folder that was moved or copied by other means.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			if withdraw {
				if err := review.Withdraw(dir); err != nil {
					return conclude(sys, source.RefusedBy("journal export", err))
				}
				return conclude(sys, source.Done("journal export"))
			}
			// asked before the journal is set aside: writing asks again
			if refused := free("journal export", out); refused != nil {
				return conclude(sys, refused)
			}
			var bundle bytes.Buffer
			if err := review.Export(dir, &bundle); err != nil {
				return conclude(sys, source.RefusedBy("journal export", err))
			}
			if err := writeDocument(out, bundle.Bytes()); err != nil {
				return err
			}
			return conclude(sys, source.Done("journal export"))
		},
	}
	c.Flags().StringVar(&out, "out", "", "output file of the bundle")
	c.Flags().BoolVar(&withdraw, "withdraw", false, "state that no other copy is used, and go on in this folder")
	c.MarkFlagsOneRequired("out", "withdraw")
	c.MarkFlagsMutuallyExclusive("out", "withdraw")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalImport(sys *cli.System) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "import BUNDLE --journal DIR",
		Short: "Create a journal from a bundle, verifying every digest",
		Long: "Creates a journal from a bundle in a new or empty private folder. Copy the files to upload separately, keeping their\n" +
			"modification times; tell ecluse source resume --local-root where they are.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := absolute(dir)
			if err != nil {
				return err
			}
			bundle, err := os.Open(args[0])
			if err != nil {
				return &usageError{cmd: c, err: fmt.Errorf("read %s: %v", args[0], errors.Unwrap(err))}
			}
			defer bundle.Close()
			if err := review.Import(bundle, dir); err != nil {
				return conclude(sys, source.RefusedBy("journal import", err))
			}
			return conclude(sys, source.Done("journal import"))
		},
	}
	c.Flags().StringVar(&dir, "journal", "", "private folder for the journal")
	require(c, "journal")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}
