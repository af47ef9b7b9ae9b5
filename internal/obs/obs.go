// Package obs is the one spelling of what Écluse reports to its operators: log attributes, metrics
// and traces. It never decides when to log; a caller that has something to say takes its words from
// here.
package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// NewLogger returns the process's logger. Format is "json", "text", or "auto", which is text when
// terminal is true. Level is one of debug, info, warn, error.
func NewLogger(w io.Writer, format, level string, terminal bool) (*slog.Logger, error) {
	var lv slog.Level
	if err := lv.UnmarshalText([]byte(level)); err != nil || strings.ContainsAny(level, "+-") {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: lv}
	switch {
	case format == "json", format == "auto" && !terminal:
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case format == "text", format == "auto":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format %q: use auto, json or text", format)
}

// Discard returns a logger that says nothing, for tests and libraries.
func Discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Entry describes the start, the renewal or the extension of a cooldown (R78, R79).
type Entry struct {
	Host    string
	Port    int
	Status  int
	Delay   time.Duration
	Hint    string // "seconds", "date" or "fallback"
	Ceiling time.Duration
	Kind    string // "metadata", "artifact" or "companion"
}

func (e Entry) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("upstream_host", e.Host), slog.Int("upstream_port", e.Port),
		slog.Int("status", e.Status), slog.Float64("delay_seconds", e.Delay.Seconds()), slog.String("hint", e.Hint),
		slog.Float64("ceiling_seconds", e.Ceiling.Seconds()), slog.String("kind", e.Kind),
	}
}

// LogEntered writes the one line of a cooldown's start. It carries no URL, package, query or
// credential.
func LogEntered(ctx context.Context, l *slog.Logger, e Entry) {
	l.LogAttrs(ctx, slog.LevelWarn, "cooldown entered", e.attrs()...)
}

// LogExtended writes the one line of a cooldown that got longer, with its new end in whole seconds,
// rounded up (R101).
func LogExtended(ctx context.Context, l *slog.Logger, e Entry, until time.Time) {
	end := until.Add(time.Second - 1).UTC().Truncate(time.Second)
	l.LogAttrs(ctx, slog.LevelWarn, "cooldown extended", append(e.attrs(), slog.String("until", end.Format(time.RFC3339)))...)
}

// LogRecovered writes the one line of a cooldown's end.
func LogRecovered(ctx context.Context, l *slog.Logger, host string, port int) {
	l.LogAttrs(ctx, slog.LevelInfo, "cooldown recovered",
		slog.String("upstream_host", host), slog.Int("upstream_port", port))
}

// Err is the attribute of an error.
func Err(err error) slog.Attr { return slog.String("error", err.Error()) }

// Ecosystem is the attribute that names an ecosystem ("npm").
func Ecosystem(name string) slog.Attr { return slog.String("ecosystem", name) }

// Package is the attribute that names a package. It is for log lines about one request, never for a
// metric's label.
func Package(name string) slog.Attr { return slog.String("package", name) }
