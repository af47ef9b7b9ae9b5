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
)

func newJournal(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "journal",
		Short: "Look at the journal of a run, have it verified, and settle what only a person can settle",
		Long:  "Works on the journal folder of ecluse source, without the network.",
	}
	exitCodes(c, cli.Done, cli.Usage)
	c.AddCommand(newJournalShow(sys), newJournalVerify(sys), newJournalResolve(sys), newJournalExport(sys), newJournalImport(sys))
	return c
}

func newJournalShow(sys *cli.System) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show DIR",
		Short: "Show the run, each file, each restriction, what blocks and what may be done next",
		Long:  "Shows the run, the state of each file, each restriction with its remaining time, what blocks and the next allowed action.\nNothing is written and nothing is sent.",
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
	c.Flags().BoolVar(&asJSON, "json", false, "the same as one JSON document")
	exitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalVerify(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check names, wrappers, integrity, bindings, numbering and chain",
		Long:  "Checks the names, wrappers, integrity, bindings, numbering and chain of every file, and lists each fault. The integrity is a\nplain hash: it shows accidents, not forgery.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := showJournal(sys, "journal verify", args[0])
			if err != nil {
				return err
			}
			for _, f := range report.Faults {
				if _, err := fmt.Fprintf(sys.Stdout, "%s %s %s: %s\n", f.Code, orElse(f.Entry, "-"), orElse(f.Field, "-"), f.Reason); err != nil {
					return err
				}
			}
			if report.Sound {
				_, err = fmt.Fprintf(sys.Stdout, "sound: %d files of the run, %d restrictions\n", len(report.Files), len(report.Restrictions))
			}
			return soundness(report, err)
		},
	}
	exitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
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
	e := json.NewEncoder(sys.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func newJournalResolve(sys *cli.System) *cobra.Command {
	var asPlan bool
	var input, outcome string
	c := &cobra.Command{
		Use:   "resolve DIR (--plan [--outcome WORD] | --input APPROVED.json)",
		Short: "State what became of a request whose end the journal does not know",
		Long: "With --plan, prints a statement about the first open question of the journal, for approval with ecluse source approve.\n" +
			"With --input, appends the approved statement. The journal is then quiet for ten minutes after the review, and free\n" +
			"afterwards for the files that were never attempted; an interrupted upload stays unverified for ever.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := absolute(args[0])
			if err != nil {
				return err
			}
			if asPlan {
				envelope, err := review.Plan(dir, outcome, time.Now())
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
	c.Flags().StringVar(&outcome, "outcome", "unknown", "what you found out: applied, not-applied or unknown")
	c.Flags().StringVar(&input, "input", "", "the approved statement")
	c.MarkFlagsOneRequired("plan", "input")
	c.MarkFlagsMutuallyExclusive("plan", "input")
	exitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalExport(sys *cli.System) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "export DIR --out BUNDLE",
		Short: "Write a journal as one file, to go on with on another machine",
		Long: "Writes a sound journal as one file. The journal must be used in one place only from then on: go on with the import, and keep\n" +
			"the folder as it is.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := absolute(args[0])
			if err != nil {
				return err
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
	c.Flags().StringVar(&out, "out", "", "where the bundle goes")
	require(c, "out")
	exitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newJournalImport(sys *cli.System) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "import BUNDLE --journal DIR",
		Short: "Make a journal of a bundle, with every digest verified",
		Long: "Makes a journal of a bundle in a new or empty private folder. The files of the corpus come by another way, with their\n" +
			"modification times; ecluse source resume --local-root names where they are here.",
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
	c.Flags().StringVar(&dir, "journal", "", "the private folder that the journal goes to")
	require(c, "journal")
	exitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}
