package main

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ecluse-gate/ecluse/internal/emulator"
)

// stage is what a script's commands share: its emulator, and how many requests it has looked at.
type stage struct {
	emulator *emulator.Emulator
	looked   int
}

type stageKey struct{}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

// startEmulator starts an emulator beside the script, on a socket of its own, and names it $EMULATOR.
func startEmulator(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: emulator")
	}
	e, err := emulator.New(emulator.Options{})
	ts.Check(err)
	server := httptest.NewServer(e)
	ts.Defer(server.Close)
	ts.Setenv("EMULATOR", server.URL)
	stageOf(ts).emulator = e
}

func emulatorOf(ts *testscript.TestScript) *emulator.Emulator {
	e := stageOf(ts).emulator
	if e == nil {
		ts.Fatalf("start an emulator first")
	}
	return e
}

// setScript replaces the emulator's script by a file.
func setScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: script FILE")
	}
	rules, err := emulator.ParseScript(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(emulatorOf(ts).SetScript(rules))
}

// seenRequests compares what the emulator saw since the last look with its arguments: "GET:404 PUT:201". Without arguments, nothing was sent.
func seenRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: seen METHOD:STATUS…")
	}
	var got []string
	all := emulatorOf(ts).Requests()
	from := stageOf(ts).looked
	stageOf(ts).looked = len(all)
	for _, r := range all[from:] {
		status := 0
		if r.Answer != nil {
			status = r.Answer.Status
		}
		got = append(got, fmt.Sprintf("%s:%d", r.Method, status))
	}
	if strings.Join(got, " ") != strings.Join(args, " ") {
		ts.Fatalf("the service saw %v, want %v", got, args)
	}
}

// extractWalk writes the shell lines between the source-walk markers of a document into a script, with a free port in place of the documented one.
func extractWalk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: walk DOCUMENT SCRIPT")
	}
	data, err := os.ReadFile(args[0])
	ts.Check(err)
	text, err := walkOf(string(data))
	ts.Check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	address := listener.Addr().String()
	ts.Check(listener.Close())
	text = strings.Replace(strings.ReplaceAll(text, "127.0.0.1:8910", address), " &\n", " &\ntrap \"kill $!\" EXIT\n", 1)
	text = "set -eu\n" + text
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// walkOf is the text of the sh blocks between the markers.
func walkOf(document string) (string, error) {
	_, rest, ok := strings.Cut(document, "<!-- source-walk -->")
	section, _, end := strings.Cut(rest, "<!-- /source-walk -->")
	if !ok || !end {
		return "", fmt.Errorf("the document has no source-walk markers")
	}
	var b strings.Builder
	for i, block := range strings.Split(section, "```") {
		if lines, isShell := strings.CutPrefix(block, "sh\n"); i%2 == 1 && isShell {
			b.WriteString(lines)
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("the walk has no shell lines")
	}
	return b.String(), nil
}
