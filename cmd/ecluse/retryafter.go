package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/retryafter"
)

func newRetryAfter(sys *cli.System) *cobra.Command {
	var receivedAt string
	var asJSON bool
	c := &cobra.Command{
		Use:   "retry-after [flags] [--] [VALUE...]",
		Short: "Show how a Retry-After header is read",
		Long: "Parses the field as RFC 9110 defines it. Each VALUE is one field line of the response;\n" +
			"without any, the field is absent. Put -- before a value that begins with a dash.",
		Example: "  ecluse retry-after 120\n" +
			"  ecluse retry-after --received-at 2026-12-01T12:00:00Z 'Tue, 01 Dec 2026 12:02:00 GMT'",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, values []string) error {
			received := time.Now()
			if c.Flags().Changed("received-at") {
				var err error
				if received, err = time.Parse(time.RFC3339, receivedAt); err != nil {
					return &usageError{cmd: c, err: fmt.Errorf("--received-at %q is not an RFC 3339 time like 2026-12-01T12:00:00Z", receivedAt)}
				}
			}
			report := retryafter.Parse(values, received)
			if asJSON {
				return json.NewEncoder(sys.Stdout).Encode(factsOf(report))
			}
			return explainField(sys.Stdout, report)
		},
	}
	c.Flags().StringVar(&receivedAt, "received-at", "", "when the response arrived, as an RFC 3339 `TIME` (default now)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Usage)
	return c
}

// retryAfterFacts is the shape of --json.
type retryAfterFacts struct {
	Kind         string   `json:"kind"`
	Form         *string  `json:"form"`
	DelaySeconds *int64   `json:"delay_seconds"`
	NotBefore    *string  `json:"not_before"`
	Notes        []string `json:"notes"`
}

func factsOf(r retryafter.Report) retryAfterFacts {
	facts := retryAfterFacts{Kind: r.Kind.String(), Notes: append([]string{}, r.Notes.Strings()...)}
	if form := r.Form.String(); form != "" {
		facts.Form = &form
	}
	if n, ok := r.DelaySeconds(); ok {
		facts.DelaySeconds = &n
	}
	if at, ok := r.NotBefore(); ok {
		text := at.Format(time.RFC3339Nano)
		facts.NotBefore = &text
	}
	return facts
}

// explainField prints the facts as sentences, each fact in a line of its own.
func explainField(out io.Writer, r retryafter.Report) error {
	facts := factsOf(r)
	var text strings.Builder
	text.WriteString("kind:        " + facts.Kind + ", " + map[retryafter.Kind]string{
		retryafter.KindMissing: "the response has no such field",
		retryafter.KindInvalid: "not valid by RFC 9110; no delay is known",
		retryafter.KindSeconds: "a number of seconds from the receipt of the response",
		retryafter.KindDate:    "a point in time",
	}[r.Kind] + "\n")
	if facts.Form != nil {
		text.WriteString("form:        " + *facts.Form + "\n")
	}
	if facts.DelaySeconds != nil {
		fmt.Fprintf(&text, "delay:       %d s after %s\n", *facts.DelaySeconds, r.Received.UTC().Format(time.RFC3339Nano))
	}
	if facts.NotBefore != nil {
		text.WriteString("not before:  " + *facts.NotBefore + "\n")
	}
	for _, note := range facts.Notes {
		text.WriteString("note:        " + note + ", " + noteMeanings()[note] + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func noteMeanings() map[string]string {
	return map[string]string{
		"duplicate":       "more than one value was sent; the field allows one",
		"unrepresentable": "the delay is too large to represent; treat it as endless, never as short",
		"oversized":       fmt.Sprintf("the field is longer than %d characters", retryafter.MaxLength),
		"weekday":         "the day of the week does not match the date",
	}
}
