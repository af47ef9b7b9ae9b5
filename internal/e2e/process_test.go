// Package e2e_test drives the real command with real package-manager clients in front of it and
// real registries behind it. What a test needs is installed by `make setup`; where it is missing
// the test is skipped with a reason, and fails when CI=true.
package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds everything that another program must get done.
const patience = 3 * time.Minute

// tool returns the path of something that `make setup` installs below testtools/node_modules.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../testtools/node_modules", filepath.FromSlash(name)))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		missing(t, name)
	}
	return path
}

// command returns the path of a command of the system.
func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name)
	}
	return path
}

func missing(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing; make setup installs it", name)
	}
	t.Skipf("SKIPPED: %s is missing; make setup installs it", name)
}

// environment is what a program of a test sees: a home of its own and nothing of the person who
// runs the test.
func environment(home string, more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "NO_UPDATE_NOTIFIER=1",
		// npm asks for a listing of itself otherwise, at any moment
		"npm_config_update_notifier=false",
	}, more...)
}

// result is how a program ended.
type result struct {
	code   int
	output string // both streams
	took   time.Duration
}

// play runs a program to its end.
func play(t *testing.T, dir string, env []string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	r := result{output: string(out), took: time.Since(begin)}
	if cmd.Process != nil {
		// what it left running would go on to write where the test cleans up
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		r.code = -1
		if cmd.ProcessState != nil {
			r.code = cmd.ProcessState.ExitCode()
		}
		if ctx.Err() != nil {
			t.Fatalf("%q did not end within %v:\n%s", argv, patience, out)
		}
	}
	return r
}

// output collects what a running program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a program until the end of the test and shows its output if the test fails.
func start(t *testing.T, dir string, env []string, argv ...string) *output {
	t.Helper()
	out := &output{}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(argv[0]), out)
		}
	})
	return out
}

// until polls until ready says true.
func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

const firstPort, ports = 11000, 20000

var (
	somewhere = rand.Uint32N(ports) // where this process begins to look for a port
	picked    atomic.Uint32
)

// freeAddress picks a loopback address for a program that cannot pick one itself. It is picked
// once, and lies below the ports that the kernel gives to whoever asks for any, so that it is
// nobody's until the program listens there, however long it takes to start.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+(somewhere+picked.Add(1))%ports))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// binary is the command under test, which TestMain sets before any test runs: what ECLUSE_BINARY
// names, or built here.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	// Clients that wait out a cooldown need no processor, so more of them run at once than go test
	// would let.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	if binary = os.Getenv("ECLUSE_BINARY"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "ecluse-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ecluse")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/ecluse").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// gate is a running `ecluse serve`.
type gate struct {
	npm   string // URL of the npm mount, with a trailing slash
	admin string // URL of the admin listener, with a trailing slash
	log   *output
}

// serveGate starts the command with a configuration to which it adds the addresses.
func serveGate(t *testing.T, config string, flags ...string) *gate {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "ecluse.yaml", "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+config)
	out := start(t, dir, environment(dir), append([]string{binary, "serve", "--config", "ecluse.yaml"}, flags...)...)
	g := &gate{log: out}
	listens := regexp.MustCompile(`npm registry at (http://\S+/npm/)\nstatus page at (http://\S+/)\n`)
	until(t, "ecluse serve", func() bool {
		m := listens.FindStringSubmatch(out.String())
		if m == nil {
			return false
		}
		g.npm, g.admin = m[1], m[2]
		return true
	})
	return g
}

// write makes a file below dir.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hostOf is the host:port of a URL.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
