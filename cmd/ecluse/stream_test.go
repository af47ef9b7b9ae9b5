//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/emulator"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/source"
)

// ecluse is the real command as a file that can be started in pipes and sessions.
func (v *victim) ecluse() string {
	v.t.Helper()
	self, err := os.Executable()
	must(v.t, err)
	link := v.path("ecluse")
	if err := os.Symlink(self, link); err != nil && !os.IsExist(err) {
		v.t.Fatal(err)
	}
	return link
}

// throttles makes the first upload wait.
func (v *victim) throttles(seconds int) {
	v.t.Helper()
	rules, err := emulator.ParseScript(strings.NewReader(fmt.Sprintf(`[{"match":{"method":"POST","nth":1},"act":{"status":429,"headers":{"Retry-After":"%d"}}}]`, seconds)))
	must(v.t, err)
	must(v.t, v.emulator.SetScript(rules))
}

// posted waits until the service has answered an upload.
func (v *victim) posted() {
	v.t.Helper()
	until(v.t, "an upload", func() bool {
		return slices.ContainsFunc(v.emulator.Requests(), func(r emulator.Request) bool { return r.Method == http.MethodPost && r.Answer != nil })
	})
}

func (v *victim) applyArgs(more ...string) []string {
	return append([]string{"source", "apply", v.approved, "--emulator", "--journal", v.path("journal"), "--receipts", v.path("receipts")}, more...)
}

// beside reads the one outcome that lies beside the journal, which must be private.
func (v *victim) beside() (o source.Outcome) {
	v.t.Helper()
	found, err := filepath.Glob(v.path("journal.outcome-*-apply.json"))
	must(v.t, err)
	if len(found) != 1 {
		v.t.Fatalf("outcomes beside the journal: %v", found)
	}
	info, err := os.Stat(found[0])
	must(v.t, err)
	if info.Mode().Perm() != 0o600 {
		v.t.Errorf("mode %v", info.Mode())
	}
	data, err := os.ReadFile(found[0])
	must(v.t, err)
	must(v.t, json.Unmarshal(data, &o))
	return o
}

// exitCode is that of a command that ended by itself; a signal that killed it fails the test.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case !ok:
		t.Fatal(err)
	case exit.ExitCode() < 0:
		t.Errorf("killed: %v", err)
	}
	return exit.ExitCode()
}

// A reader that goes away ends nothing: the run is completed, says in its outcome that progress
// could not be written, and the outcome is kept.
func TestApplyIntoPipesThatClose(t *testing.T) {
	for _, tt := range []struct{ name, reader, progress string }{
		{"head", "2>&1 | head -1", "json"},
		{"bar", "2>&1 | head -c 1", "bar"},
		{"nobody", "2>&1 | true", "json"},
		{"a while", "2>&1 | sleep 1", "json"},
		{"standard output only", "2>/dev/null | true", "none"},
		{"closed before the start", ">&- 2>&-", "json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			v.throttles(2)
			script := `code=$1; shift; { "$@"; echo $? >"$code"; } ` + tt.reader
			args := append([]string{"-c", script, "sh", v.path("code"), v.ecluse()}, v.applyArgs("--progress", tt.progress)...)
			out, err := exec.CommandContext(t.Context(), "sh", args...).CombinedOutput()
			must(t, err)
			code, err := os.ReadFile(v.path("code"))
			must(t, err)
			if string(code) != "0\n" {
				t.Errorf("exit code %s%s", code, out)
			}
			o := v.beside()
			broken := slices.ContainsFunc(o.Warnings, func(w source.Warning) bool { return w.Code == "progress-output-failed" })
			if o.Status != source.StatusCompleted || broken != (strings.Contains(tt.reader, "|") && tt.progress != "none") {
				t.Errorf("%s, warnings %+v", o.Status, o.Warnings)
			}
			if slices.Contains(v.listing(), "pending-request.json") {
				t.Error("a marker is left")
			}
			v.once()
		})
	}
}

// A signal in the wait after a 429: the run ends at once, with 130 and the word that it was
// interrupted, and keeps its outcome; SIGHUP does as SIGTERM does, and no second SIGHUP kills.
func TestApplyInterrupted(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			v.throttles(25)
			cmd := exec.CommandContext(t.Context(), v.ecluse(), v.applyArgs("--out", v.path("outcome.json"))...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			must(t, cmd.Start())
			v.posted()
			must(t, cmd.Process.Signal(signal))
			if signal == syscall.SIGHUP {
				_ = cmd.Process.Signal(signal) // it may have ended
			}
			if code := exitCode(t, cmd.Wait()); code != int(cli.Interrupted) || !strings.Contains(stderr.String(), "ecluse: the run was interrupted") {
				t.Errorf("exit code %d: %s", code, &stderr)
			}
			o := v.beside()
			if !o.Interrupted || o.Status != source.StatusPartial {
				t.Errorf("%+v", o)
			}
			kept, err := os.ReadFile(v.path("outcome.json"))
			must(t, err)
			if !bytes.Equal(kept, stdout.Bytes()) {
				t.Errorf("kept %s\nprinted %s", kept, &stdout)
			}
			if slices.Contains(v.listing(), "pending-request.json") {
				t.Error("a marker is left")
			}
		})
	}
}

// The terminal of a session goes away with the run in it: the same, with nowhere to print.
func TestApplyInASessionThatHangsUp(t *testing.T) {
	v := newVictim(t)
	v.throttles(25)
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer terminal.Close()
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), v.ecluse(), v.applyArgs()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	must(t, screen.Close())
	v.posted()
	must(t, terminal.Close())
	if code := exitCode(t, cmd.Wait()); code != int(cli.Interrupted) {
		t.Errorf("exit code %d", code)
	}
	if o := v.beside(); !o.Interrupted {
		t.Errorf("%+v", o)
	}
	v.once()
}

// Looking at a journal into a pipe that nobody reads is a failure, and no death.
func TestJournalIntoAClosedPipe(t *testing.T) {
	v := newVictim(t)
	v.run()
	for _, args := range [][]string{{"show"}, {"show", "--json"}, {"verify"}} {
		r, w, err := os.Pipe()
		must(t, err)
		must(t, r.Close())
		cmd := exec.CommandContext(t.Context(), v.ecluse(), append([]string{"journal", args[0], v.path("journal")}, args[1:]...)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &stderr
		err = cmd.Run()
		must(t, w.Close())
		if code := exitCode(t, err); code != int(cli.Failed) || stderr.Len() > 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}

// The readers of a gate's and a worker's streams go away after the first line: both go on. SIGHUP
// reloads a gate and ends a worker.
func TestServicesIntoPipesThatClose(t *testing.T) {
	v := newVictim(t)
	up := fakenpm.New("http://unused.test")
	up.Publish("a", "1.0.0", time.Now().AddDate(-1, 0, 0), nil)
	upstream := httptest.NewServer(up)
	defer upstream.Close()
	config := v.path("gate.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "mounts: {npm: {public: '%s/', mirror: {url: 'http://127.0.0.1:9/'}}, pypi: {enabled: false}}\ndataDir: '%s'\nlog: {level: debug}\nadmin: ''\n",
		upstream.URL, v.path("data")), 0o600))
	begin := func(args ...string) (*exec.Cmd, string) {
		t.Helper()
		r, w, err := os.Pipe()
		must(t, err)
		cmd := exec.CommandContext(t.Context(), v.ecluse(), append(args, "--config", config)...)
		cmd.Stdout, cmd.Stderr = w, w
		must(t, cmd.Start())
		must(t, w.Close())
		line := ""
		for lines := bufio.NewReader(r); !strings.Contains(line, "http://") && !strings.HasPrefix(line, "running"); {
			line, err = lines.ReadString('\n')
			must(t, err)
		}
		must(t, r.Close())
		return cmd, line
	}
	gate, line := begin("serve", "--listen", "127.0.0.1:0", "--no-worker")
	_, address, _ := strings.Cut(strings.TrimSpace(line), "http://")
	for range 2 {
		if code, _ := fetch(t, "http://"+address+"a"); code != http.StatusOK {
			t.Errorf("the gate answers %d", code)
		}
		must(t, gate.Process.Signal(syscall.SIGHUP))
	}
	if code, _ := fetch(t, "http://"+address+"a"); code != http.StatusOK {
		t.Errorf("the gate answers %d after SIGHUP", code)
	}
	must(t, gate.Process.Signal(syscall.SIGTERM))
	if code := exitCode(t, gate.Wait()); code != 0 {
		t.Errorf("the gate ended with %d", code)
	}
	worker, _ := begin("mirror", "run")
	must(t, worker.Process.Signal(syscall.SIGHUP))
	if code := exitCode(t, worker.Wait()); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
}
