package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Code is an exit code of the command.
type Code int

// The exit codes, of which every command's help lists those it uses.
const (
	Done        Code = 0
	Failed      Code = 1
	Refused     Code = 2
	Partial     Code = 3
	Waiting     Code = 4
	Usage       Code = 64
	Interrupted Code = 130
)

var meanings = [...]struct {
	code Code
	text string
}{
	{Done, "done"},
	{Failed, "failed"},
	{Refused, "refused or blocked: nothing was written"},
	{Partial, "partial: some of the work was done"},
	{Waiting, "waiting for a server restriction to pass"},
	{Usage, "wrong usage"},
	{Interrupted, "interrupted"},
}

// Meaning says in one line what the code means, or "" for a number that is not one of ours.
func (c Code) Meaning() string {
	for _, m := range meanings {
		if m.code == c {
			return m.text
		}
	}
	return ""
}

// Describe is the block of a help text that lists the given codes.
func Describe(codes ...Code) string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "  %-3d %s\n", int(c), c.Meaning())
	}
	return b.String()
}

// ExitCodes adds the list of a command's exit codes to the end of its help.
func ExitCodes(c *cobra.Command, codes ...Code) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	c.Long = strings.TrimRight(text, "\n") + "\n\n" + Describe(codes...)
}

// ExitError is an error that has decided its exit code. A nil Err ends the command without a
// message, for commands whose output has said it all.
type ExitError struct {
	Code Code
	Err  error
}

// Exit wraps err (which may be nil) with an exit code.
func Exit(code Code, err error) *ExitError { return &ExitError{Code: code, Err: err} }

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d (%s)", int(e.Code), e.Code.Meaning())
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }
