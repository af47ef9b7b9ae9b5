package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
)

// newReport chooses how progress is shown (S147): a bar on a terminal, JSON lines, or nothing.
func newReport(how string, stderr io.Writer) (func(workflow string) *progress.Reporter, error) {
	switch how {
	case "auto":
		if !cli.IsTerminal(stderr) {
			return nil, nil
		}
		return barReport(stderr), nil
	case "bar":
		return barReport(stderr), nil
	case "json":
		return func(workflow string) *progress.Reporter {
			lines := json.NewEncoder(stderr)
			return progress.New(workflow, time.Now, func(e progress.Event) error { return lines.Encode(e) })
		}, nil
	case "none":
		return nil, nil
	}
	return nil, fmt.Errorf("--progress %q: use auto, bar, json or none", how)
}

func barReport(w io.Writer) func(string) *progress.Reporter {
	return func(workflow string) *progress.Reporter {
		b := &bar{w: w, workflow: workflow}
		return progress.New(workflow, time.Now, b.show)
	}
}

// bar draws events as one line that changes.
type bar struct {
	w        io.Writer
	workflow string

	mu  sync.Mutex // guards bar
	bar *progressbar.ProgressBar
}

func (b *bar) show(e progress.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(b.w), progressbar.OptionShowBytes(true),
			progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	if e.Total > 0 {
		b.bar.ChangeMax64(e.Total)
	}
	b.bar.Describe(words(e))
	if err := b.bar.Set64(e.Sent); err != nil {
		return err
	}
	if e.Activity == progress.Done.String() {
		return b.bar.Finish()
	}
	return nil
}

// words is what a person reads beside the bar.
func words(e progress.Event) string {
	switch {
	case e.Wait != nil:
		return fmt.Sprintf("%s: the service asked to wait %d s", e.Workflow, e.Wait.Seconds)
	case e.ProcessingFile != nil && e.ProcessingFile.Attempt > 1:
		return fmt.Sprintf("%s: file %d of %d, second attempt", e.Workflow, e.ProcessingFile.Ordinal, e.ProcessingFile.Total)
	case e.ProcessingFile != nil:
		return fmt.Sprintf("%s: file %d of %d", e.Workflow, e.ProcessingFile.Ordinal, e.ProcessingFile.Total)
	}
	return e.Workflow + ": " + e.Activity
}
