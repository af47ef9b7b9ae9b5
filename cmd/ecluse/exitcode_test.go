package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/gate"
)

// exitsWith is the script command "code N PROGRAM ARGS...": it runs the program, wants exit code N,
// and leaves the output for the commands stdout and stderr of cmpenv-style files "out" and "err" in
// the work folder.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [args]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// play runs the command in this process.
func play(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return playWith(t, nil, args...)
}

// playWith is play with variables of the environment.
func playWith(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(&cli.System{
		Args: args, Environ: append([]string{"PATH=" + os.Getenv("PATH")}, environ...),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Context: t.Context(),
	})
	return code, out.String(), errs.String()
}

func TestErrorToExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want cli.Code
	}{
		{nil, cli.Done},
		{errors.New("anything"), cli.Failed},
		{&usageError{err: errors.New("x")}, cli.Usage},
		{&config.Problems{}, cli.Refused},
		{context.Canceled, cli.Interrupted},
		{fmt.Errorf("asking: %w", context.Canceled), cli.Interrupted},
		{context.DeadlineExceeded, cli.Failed},
		{fmt.Errorf("applying: %w", cli.Exit(cli.Waiting, nil)), cli.Waiting},
		{cli.Exit(cli.Partial, context.Canceled), cli.Partial},
		{fmt.Errorf("explaining: %w", &gate.Unavailable{Cooldown: true}), cli.Waiting}, // R99
		{&gate.Unavailable{}, cli.Failed},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("codeOf(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

// every calls f for each command of the tree that is ours.
func every(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			every(sub, f)
		}
	}
}

// The help of every command lists its exit codes with the meanings of the one table; and every
// command refuses a flag that it does not have with the code for wrong usage.
func TestHelpListsExitCodes(t *testing.T) {
	count := 0
	every(newRoot(&cli.System{Context: t.Context()}), func(c *cobra.Command) {
		count++
		path := strings.Fields(c.CommandPath())[1:]
		code, out, _ := play(t, append(path, "--help")...)
		_, list, found := strings.Cut(out, "\nExit codes:\n")
		if code != 0 || !found {
			t.Errorf("%s --help: exit code %d, lists exit codes: %v", c.CommandPath(), code, found)
			return
		}
		list, _, _ = strings.Cut(list, "\n\n")
		listed := map[cli.Code]bool{}
		for line := range strings.Lines(list + "\n") {
			number, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.Atoi(number)
			if err != nil || cli.Code(n).Meaning() != strings.TrimSpace(meaning) {
				t.Errorf("%s --help: %q is not a line of the table", c.CommandPath(), line)
			}
			listed[cli.Code(n)] = true
		}
		if !listed[cli.Done] || !listed[cli.Usage] {
			t.Errorf("%s --help lists neither 0 nor 64 or lacks one of them:\n%s", c.CommandPath(), list)
		}
		if code, _, stderr := play(t, append(path, "--no-such-flag")...); code != int(cli.Usage) || !strings.Contains(stderr, "--help") {
			t.Errorf("%s --no-such-flag: exit code %d, stderr %q", c.CommandPath(), code, stderr)
		}
	})
	if count < 3 {
		t.Errorf("only %d commands were looked at", count)
	}
}

func TestOneConstructorOneFile(t *testing.T) {
	for _, newCommand := range commands() {
		name := newCommand(&cli.System{Context: t.Context()}).Name()
		if _, err := os.Stat(strings.ReplaceAll(name, "-", "") + ".go"); err != nil {
			t.Errorf("sub-command %s has no file of its own: %v", name, err)
		}
	}
}
