// Package cli is the outside world of the command as one value: arguments, environment, streams and
// the context that signals cancel, together with the exit codes and what they mean. It knows
// none of the commands and flags.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// System is what a command may touch of the world around it. Tests build their own; New takes the
// process's.
type System struct {
	// Args are the command line without the program's name.
	Args []string
	// Environ lists the environment as "KEY=value", as os.Environ does.
	Environ []string
	// Stdin, Stdout and Stderr are never nil.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Context ends at the first SIGINT or SIGTERM. A second signal kills the process in the
	// ordinary way.
	Context context.Context //nolint:containedctx // the one place that hands the process's context down
}

// New describes the running process. The returned function stops listening for signals.
func New() (*System, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return &System{
		Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Context: ctx,
	}, stop
}

// IsTerminal reports whether one of the streams (Stdin, Stdout or Stderr) is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
