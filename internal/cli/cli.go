// Package cli is the outside world of the command as one value: arguments, environment, streams and
// the context that signals cancel, together with the exit codes and what they mean. It knows
// none of the commands and flags.
package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
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
	// Context ends at the first SIGINT, SIGTERM or SIGHUP; the last may be taken for something else
	// with TakeHangups. A second SIGINT or SIGTERM kills the process in the ordinary way; another
	// SIGHUP does not, because a session that hangs up may send more than one.
	Context context.Context //nolint:containedctx // the one place that hands the process's context down

	hangups chan os.Signal
}

// New describes the running process. The returned function stops listening for signals, but for
// that of a broken pipe.
//
// From here on a write to a pipe that nobody reads any more fails and does not kill the process,
// also on standard output and standard error: whether what cannot be written matters is for the
// command to say. A process that was started with SIGHUP ignored, as nohup does, goes on ignoring
// it.
func New() (*System, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	endings, hangups, broken := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(endings, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
	}
	signal.Notify(broken, syscall.SIGPIPE)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-endings:
		case <-hangups:
		case <-ctx.Done():
		}
		signal.Stop(endings)
		cancel()
	}()
	stop := func() {
		cancel()
		<-ended
		signal.Stop(hangups)
		// broken stays: something may still be drawing, and its pipe must not kill the process
	}
	return &System{
		Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Context: ctx, hangups: hangups,
	}, stop
}

// TakeHangups sends every SIGHUP from now on to c, and lets none end Context. The returned function
// ends that.
func (s *System) TakeHangups(c chan<- os.Signal) (stop func()) {
	signal.Notify(c, syscall.SIGHUP) // before the other goes, so that none falls between them
	signal.Stop(s.hangups)
	return func() { signal.Stop(c) }
}

// Closed reports whether an error is that of writing to a standard stream whose reader has gone.
func Closed(err error) bool {
	file, ok := errors.AsType[*fs.PathError](err)
	return ok && (file.Path == os.Stdout.Name() || file.Path == os.Stderr.Name()) && errors.Is(file.Err, syscall.EPIPE)
}

// IsTerminal reports whether one of the streams (Stdin, Stdout or Stderr) is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
