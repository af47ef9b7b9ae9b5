package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

// usageError is a command line that no command can read: an unknown flag or command, or a wrong
// number of arguments.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// codeOf is the one table from error to exit code. What an error decided itself comes first.
func codeOf(err error) cli.Code {
	if err == nil {
		return cli.Done
	}
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		return exit.Code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return cli.Usage
	}
	if _, ok := errors.AsType[*config.Problems](err); ok {
		return cli.Refused
	}
	if wait, ok := errors.AsType[*gate.Unavailable](err); ok && wait.Cooldown {
		return cli.Waiting
	}
	if errors.Is(err, context.Canceled) {
		return cli.Interrupted
	}
	return cli.Failed
}

// report prints err on stderr and returns its exit code.
func report(sys *cli.System, err error) cli.Code {
	code := codeOf(err)
	if err == nil {
		return code
	}
	if exit, ok := errors.AsType[*cli.ExitError](err); ok && exit.Err == nil || cli.Closed(err) {
		return code // it has been said, or whoever it was printed for has gone
	}
	text := visible.Text(err.Error())
	if code == cli.Interrupted {
		text = "interrupted"
	}
	fmt.Fprintf(sys.Stderr, "ecluse: %s\n", text)
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(sys.Stderr, "Run '%s --help' for usage.\n", usage.cmd.CommandPath())
	}
	return code
}

// markUsage makes every command of the tree answer a wrong number of arguments, and a name that is
// no command, with a usageError, which cobra itself does not type.
func markUsage(c *cobra.Command) {
	if !c.Runnable() { // a group; cobra would answer anything with its help and 0
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if c.HasSubCommands() && len(args) > 0 {
			return &usageError{cmd: c, err: unknownCommand(c, args[0])}
		}
		if err := check(c, args); err != nil {
			return &usageError{cmd: c, err: inWords(c, args, err)}
		}
		if err := errors.Join(c.ValidateRequiredFlags(), c.ValidateFlagGroups()); err != nil {
			return &usageError{cmd: c, err: err}
		}
		return nil
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}

// inWords replaces cobra's own texts, such as "accepts 1 arg(s), received 2".
func inWords(c *cobra.Command, args []string, err error) error {
	if text := err.Error(); strings.Contains(text, "arg(s)") || strings.HasPrefix(text, "unknown command ") {
		return fmt.Errorf("wrong number of arguments (%d); use %s", len(args), c.UseLine())
	}
	return err
}

func unknownCommand(c *cobra.Command, name string) error {
	text := fmt.Sprintf("%q has no command %q", c.CommandPath(), name)
	if c.SuggestionsMinimumDistance <= 0 {
		c.SuggestionsMinimumDistance = 2
	}
	if near := c.SuggestionsFor(name); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return errors.New(text)
}
