package main

import (
	"fmt"
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

// startEmulator starts an emulator beside the script, on a socket of its own, and names it
// $EMULATOR.
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

// seenRequests compares what the emulator saw since the last look with its arguments: "GET:404
// PUT:201". Without arguments, nothing was sent.
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

// walkChanges are what a test needs and a reader does not: a port that is free, the emulator's end,
// and a restriction that a slow machine does not outlast between two commands.
var walkChanges = []struct{ text, changed string }{
	{"ecluse emulate search --listen 127.0.0.1:8910 &\n", `ecluse emulate search --listen 127.0.0.1:0 > emulator.out &
trap "kill $!" EXIT
until address=$(sed -n 's#.*http://\([0-9.:]*\).*#\1#p' emulator.out) && test -n "$address"; do sleep 0.1; done
`},
	{"127.0.0.1:8910", "$address"},
	{"\nsleep 1\n", "\n"},
	{`{"Retry-After": "3"}`, `{"Retry-After": "10"}`},
	{"\nsleep 5\n", "\nsleep 12\n"},
}

// extractWalk writes the shell lines between the source-walk markers of a document into a script,
// with the changes that a test needs.
func extractWalk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: walk DOCUMENT SCRIPT")
	}
	data, err := os.ReadFile(args[0])
	ts.Check(err)
	text, err := walkOf(string(data))
	ts.Check(err)
	for _, c := range walkChanges {
		if !strings.Contains(text, c.text) {
			ts.Fatalf("the walk has no %q any more", c.text)
		}
		text = strings.ReplaceAll(text, c.text, c.changed)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte("set -eu\n"+text), 0o600))
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
