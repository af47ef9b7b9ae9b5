package gatecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/app"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

func newMirror(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "mirror",
		Short: "Run and manage the queue of mirror jobs",
		Long: "Admitted packages that clients downloaded are copied to a registry of your own by jobs that survive a crash and wait while an\n" +
			"upstream is rate-limiting. serve runs them; these commands run them elsewhere, add jobs, and retry or drop dead ones.",
	}
	cli.ExitCodes(c, cli.Done, cli.Usage)
	c.AddCommand(newMirrorRun(sys, version, ecosystems), newMirrorList(sys, ecosystems), newMirrorRetry(sys, ecosystems),
		newMirrorDrop(sys, ecosystems), newMirrorAdd(sys, version, ecosystems))
	return c
}

// beginMirror connects a gate to its mirror. Without one nothing happens, and stop does nothing. A
// gate that serves clients is patient: it does not need the queue to begin.
func beginMirror(ctx context.Context, cfg *config.Config, gate *app.App, work, patient bool) (stop func(), err error) {
	if len(gate.Lanes()) == 0 {
		return func() {}, nil
	}
	s, err := mirror.Begin(ctx, mirror.ServiceOptions{
		Lanes: gate.Lanes(), DataDir: cfg.DataDir, QueueURL: cfg.Queue.URL, Work: work, Patient: patient, Metrics: gate.Metrics(), Logger: gate.Logger(),
	})
	if err != nil {
		return nil, err
	}
	gate.SetMirror(s.Offer, s.Status)
	return func() { s.Stop(ctx) }, nil
}

// withoutStores leaves kept files and documents to the gate that may be running in the same folder.
func withoutStores(cfg *config.Config) { cfg.Artifacts.MaxBytes, cfg.Cache.DiskBytes = 0, 0 }

func noMirror(ecosystems serving.Ecosystems) error {
	var keys []string
	for _, e := range ecosystems {
		keys = append(keys, "mounts."+e.Name+".mirror.url")
	}
	return &cli.ExitError{Code: cli.Refused, Err: errors.New("no mirror is configured; set " + strings.Join(keys, " or "))}
}

func newMirrorRun(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run mirror jobs without serving clients",
		Long: "Runs the jobs of the queue until SIGTERM, beside gates that were started with serve --no-worker. With a PostgreSQL queue\n" +
			"(queue.url) any number may run; with the SQLite file one process runs the jobs of a folder. Cooldowns are\n" +
			"shared with the gate that has the same data folder: a 429 that either met keeps both from sending.",
		Args: cobra.NoArgs,
	}
	gate := addConfigFlag(c, ecosystems)
	gate.addOverrides()
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := gate.load(c.Context(), sys)
		if err != nil {
			return err
		}
		withoutStores(cfg)
		srv, stop, err := gate.build(c.Context(), sys, cfg, version)
		if err != nil {
			return err
		}
		defer stop()
		if len(srv.Lanes()) == 0 {
			return noMirror(ecosystems)
		}
		stopMirror, err := beginMirror(c.Context(), cfg, srv, true, false)
		if err != nil {
			return err
		}
		defer stopMirror()
		fmt.Fprintln(sys.Stdout, "running mirror jobs")
		<-c.Context().Done()
		return nil
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

// queueCommand is a command on the queue of a configuration, which may belong to a running gate.
func queueCommand(
	sys *cli.System, ecosystems serving.Ecosystems, c *cobra.Command, do func(context.Context, *mirror.Queue, []string) error,
) *cobra.Command {
	gate := addConfigFlag(c, ecosystems)
	gate.addOverrides()
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := gate.load(c.Context(), sys)
		if err != nil {
			return err
		}
		q, err := mirror.Open(c.Context(), cfg.DataDir, cfg.Queue.URL, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer q.Close()
		return do(c.Context(), q, args)
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Usage)
	return c
}

func newMirrorList(sys *cli.System, ecosystems serving.Ecosystems) *cobra.Command {
	return queueCommand(sys, ecosystems, &cobra.Command{
		Use: "list", Short: "List dead, waiting and dropped jobs with their reasons", Args: cobra.NoArgs,
	}, func(ctx context.Context, q *mirror.Queue, _ []string) error {
		st, err := q.Status(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(sys.Stdout, "ready %d, running %d, waiting %d, done %d, dead %d\n", st.Ready, st.Running, st.Waiting, st.Done, st.Dead)
		tw := tabwriter.NewWriter(sys.Stdout, 0, 0, 2, ' ', 0)
		for _, list := range []struct {
			state string
			jobs  []mirror.Entry
		}{{"dead", st.DeadJobs}, {"waiting", st.WaitingJobs}, {"dropped", st.DroppedJobs}} {
			for _, e := range list.jobs {
				fmt.Fprintf(tw, "%d\t%s\t%s\tattempt %d\t%s\n", e.ID, list.state, e.Job, e.Attempts, visible.Text(e.Reason))
			}
		}
		return tw.Flush()
	})
}

func newMirrorRetry(sys *cli.System, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use: "retry ID…", Short: "Retry jobs now",
		Long: "Retries the given jobs, or all dead ones with --all, now.",
	}
	return onJobs(sys, ecosystems, c, "will be retried", (*mirror.Queue).Retry)
}

func newMirrorDrop(sys *cli.System, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use: "drop ID…", Short: "Remove jobs from the queue",
		Long: "Removes the given jobs, or all dead ones with --all, from the queue. The next client that requests such a file queues\n" +
			"a new job for it.",
	}
	return onJobs(sys, ecosystems, c, "was removed", (*mirror.Queue).Drop)
}

// onJobs acts on jobs by their numbers and says what it did, for the record.
func onJobs(
	sys *cli.System, ecosystems serving.Ecosystems, c *cobra.Command, done string,
	act func(*mirror.Queue, context.Context, int64) (mirror.Entry, error),
) *cobra.Command {
	all := c.Flags().Bool("all", false, "all dead jobs")
	c.Args = func(_ *cobra.Command, args []string) error {
		if (len(args) == 0) != *all {
			return errors.New("give the IDs of jobs, as ecluse mirror list shows them, or --all")
		}
		_, err := jobNumbers(args)
		return err
	}
	return queueCommand(sys, ecosystems, c, func(ctx context.Context, q *mirror.Queue, args []string) error {
		ids, err := jobNumbers(args)
		if err != nil {
			return err
		}
		if *all {
			dead, err := q.Dead(ctx, 10_000)
			if err != nil {
				return err
			}
			for _, e := range dead {
				ids = append(ids, e.ID)
			}
		}
		for _, id := range ids {
			e, err := act(q, ctx, id)
			if err != nil {
				return err
			}
			fmt.Fprintf(sys.Stdout, "job %d (%s) %s\n", id, e.Job, done)
		}
		return nil
	})
}

func jobNumbers(args []string) ([]int64, error) {
	var ids []int64
	for _, a := range args {
		id, err := strconv.ParseInt(a, 10, 64)
		if err != nil || id < 1 {
			return nil, fmt.Errorf("%q is not a job ID", a)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
