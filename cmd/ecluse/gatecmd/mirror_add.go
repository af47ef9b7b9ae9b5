package gatecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/app"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

func newMirrorAdd(sys *cli.System, version string, ecosystems serving.Ecosystems) *cobra.Command {
	c := &cobra.Command{
		Use:   "add --lockfile FILE…",
		Short: "Queue mirror jobs for what a build needs",
		Long: "Reads lock files (" + lockfile.Names(ecosystems.LockFiles()) + ") and queues a job for each file they list.\n" +
			"The jobs run at the worker's own pace, under the same rules as a client's request. Where a lock file lists versions\n" +
			"but no files, the public upstream is asked for them; while it is rate-limiting, this command waits.",
		Args: cobra.NoArgs,
	}
	conf := addConfigFlag(c, ecosystems)
	conf.addOverrides()
	files := c.Flags().StringArray("lockfile", nil, "lock `FILE`; may be given more than once")
	if err := c.MarkFlagRequired("lockfile"); err != nil {
		panic(err) // the flag stands one line above
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		lock, err := readLockfiles(ecosystems.LockFiles(), *files)
		if err != nil {
			return err
		}
		cfg, err := conf.load(c.Context(), sys)
		if err != nil {
			return err
		}
		return conf.addJobs(c.Context(), sys, cfg, version, lock.Needs, lock.Skipped)
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Refused, cli.Partial, cli.Usage, cli.Interrupted)
	return c
}

// readLockfiles reads lock files, and what they include from where they lie.
func readLockfiles(formats []lockfile.Format, files []string) (all lockfile.Lock, err error) {
	for _, name := range files {
		l, err := readLockfile(formats, name)
		if err != nil {
			return lockfile.Lock{}, err
		}
		all.Add(l)
	}
	return all, nil
}

func readLockfile(formats []lockfile.Format, name string) (lockfile.Lock, error) {
	data, err := readBounded(name)
	if err != nil {
		return lockfile.Lock{}, err
	}
	l, err := lockfile.Read(formats, name, data, func(other string) ([]byte, error) {
		return readBounded(filepath.Join(filepath.Dir(name), filepath.FromSlash(other)))
	})
	if err != nil {
		return lockfile.Lock{}, &cli.ExitError{Code: cli.Refused, Err: err}
	}
	return l, nil
}

// readBounded reads a file of at most one byte more than a lock file may have.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, lockfile.MaxBytes+1))
}

// addJobs makes jobs and returns how many. What an ecosystem without a mirror needs is reported and
// skipped.
func (g *gateConfig) addJobs(ctx context.Context, sys *cli.System, cfg *config.Config, version string, needs []lockfile.Need, skipped int) error {
	mirrored := map[string]bool{}
	for _, m := range cfg.Mounts {
		if m.Enabled && m.Mirror.URL != nil {
			mirrored[m.Ecosystem] = true
		}
	}
	if len(mirrored) == 0 {
		return noMirror(g.ecosystems)
	}
	q, err := mirror.Open(ctx, cfg.DataDir, cfg.Queue.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer q.Close()
	a := adder{ctx: ctx, sys: sys, mirrored: mirrored, queue: q, skipped: skipped}
	if slices.ContainsFunc(needs, func(n lockfile.Need) bool { return n.File == "" && mirrored[n.Ecosystem] }) {
		withoutStores(cfg)
		srv, stop, err := g.build(ctx, sys, cfg, version)
		if err != nil {
			return err
		}
		defer stop()
		a.gate = srv
	}
	if cli.IsTerminal(sys.Stderr) {
		a.bar = progressbar.NewOptions(len(needs), progressbar.OptionSetWriter(sys.Stderr), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription("mirror jobs"), progressbar.OptionClearOnFinish())
	}
	return a.run(needs)
}

// adder makes jobs of needs.
type adder struct {
	ctx   context.Context //nolint:containedctx // of one command
	sys   *cli.System
	gate  *app.App // nil: every need names its file
	queue *mirror.Queue
	// mirrored are the ecosystems that have a mirror.
	mirrored map[string]bool
	bar      *progressbar.ProgressBar // nil: not on a terminal

	named, fresh, skipped, failed int
}

const addBatch = 100

func (a *adder) run(needs []lockfile.Need) error {
	var batch []mirror.Job
	for i, n := range needs {
		jobs, err := a.jobs(n)
		if err != nil {
			return err
		}
		a.named += len(jobs)
		if batch = append(batch, jobs...); len(batch) >= addBatch || i == len(needs)-1 {
			fresh, err := a.queue.Insert(a.ctx, batch)
			if err != nil {
				return err
			}
			a.fresh, batch = a.fresh+fresh, batch[:0]
		}
		if a.bar != nil {
			_ = a.bar.Add(1)
		}
	}
	fmt.Fprintf(a.sys.Stdout, "files: %d, new jobs: %d, already queued: %d, entries not from a mirrored registry: %d, failed lookups: %d\n",
		a.named, a.fresh, a.named-a.fresh, a.skipped, a.failed)
	if a.failed > 0 {
		return &cli.ExitError{Code: cli.Partial}
	}
	return nil
}

// jobs are the jobs of one need.
func (a *adder) jobs(n lockfile.Need) ([]mirror.Job, error) {
	if !a.mirrored[n.Ecosystem] {
		a.skipped++
		return nil, nil
	}
	if n.File != "" {
		return []mirror.Job{{Ecosystem: n.Ecosystem, Package: n.Package, Version: n.Version, File: n.File}}, nil
	}
	jobs, err := a.files(n)
	if a.ctx.Err() != nil {
		return nil, a.ctx.Err()
	} else if err != nil {
		a.failed++
		fmt.Fprintf(a.sys.Stderr, "%s:%s@%s: %v\n", n.Ecosystem, n.Package, n.Version, err)
		return nil, nil
	}
	return jobs, nil
}

// files asks the public index which files there are, and waits out its pauses.
func (a *adder) files(n lockfile.Need) ([]mirror.Job, error) {
	for {
		jobs, err := a.gate.Files(a.ctx, n.Ecosystem, n.Package, n.Version)
		pause, ok := errors.AsType[*gate.Unavailable](err)
		if !ok || !pause.Cooldown {
			return jobs, err
		}
		select {
		case <-time.After(pause.Wait):
		case <-a.ctx.Done():
			return nil, a.ctx.Err()
		}
	}
}
