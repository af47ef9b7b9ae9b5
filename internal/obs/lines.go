package obs

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net"
	"strings"
)

// ServerLog is for http.Server.ErrorLog: the server's lines in the form of the log. A panic of ours
// is an error with its stack; what clients cause is of interest to nobody but who debugs.
func ServerLog(l *slog.Logger) *log.Logger { return log.New(serverLines{l}, "", 0) }

type serverLines struct{ logger *slog.Logger }

// Write implements io.Writer for one line.
func (s serverLines) Write(p []byte) (int, error) {
	line, rest, _ := bytes.Cut(bytes.TrimSpace(p), []byte("\n"))
	level, text := slog.LevelDebug, string(line)
	attrs := []slog.Attr{slog.String("line", text)}
	switch {
	case strings.HasPrefix(text, "http: panic"):
		level = slog.LevelError
		attrs = append(attrs, slog.String("stack", string(rest)))
	case strings.HasPrefix(text, "http: Accept error") && !strings.Contains(text, "too many open files"):
		// that is told once, see Listener
		level = slog.LevelWarn
	}
	s.logger.LogAttrs(context.Background(), level, "the HTTP server reports trouble", attrs...)
	return len(p), nil
}

// Listener is a listener that reports when it takes no connection for want of a file descriptor.
func (m *Metrics) Listener(l net.Listener, logger *slog.Logger) net.Listener {
	return listener{l, m, logger}
}

type listener struct {
	net.Listener
	metrics *Metrics
	logger  *slog.Logger
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		l.metrics.Exhausted(l.logger, err)
	}
	return c, err
}
