package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

// process is one run of the command inside the test.
type process struct {
	lines  *bufio.Scanner
	stderr *bytes.Buffer
	stop   context.CancelFunc
	code   chan int
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &process{lines: bufio.NewScanner(r), stderr: &bytes.Buffer{}, stop: cancel, code: make(chan int, 1)}
	sys := &cli.System{Args: args, Stdin: strings.NewReader(""), Stdout: w, Stderr: p.stderr, Context: ctx}
	go func() {
		code := run(sys)
		w.Close()
		p.code <- code
	}()
	return p
}

// address reads the next line of stdout and returns the URL in it.
func (p *process) address(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the command ended: %s", p.stderr)
	}
	_, url, ok := strings.Cut(p.lines.Text(), "http://")
	if !ok {
		t.Fatalf("no address in %q", p.lines.Text())
	}
	return "http://" + strings.TrimSuffix(url, "/")
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The gate as a user starts it: it says where it listens, serves, shows its state, and stops with 0
// when the request at work has ended.
func TestServe(t *testing.T) {
	up := fakenpm.New("http://unused.test")
	up.Publish("a", "1.0.0", time.Now().AddDate(-1, 0, 0), nil)
	upstream := httptest.NewServer(up)
	defer upstream.Close()
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--npm", upstream.URL, "--data", t.TempDir())
	npm, admin, python := p.address(t), p.address(t), p.address(t)
	if !strings.HasSuffix(python, "/pypi/simple") {
		t.Errorf("the Python index is at %s", python)
	}
	if code, body := fetch(t, npm+"/a"); code != 200 || !strings.Contains(body, npm+"/a/-/a-1.0.0.tgz") {
		t.Errorf("listing: %d %s", code, body)
	}
	status := start(t, "status", "--admin", admin)
	var table strings.Builder
	for status.lines.Scan() {
		fmt.Fprintln(&table, status.lines.Text())
	}
	if code := <-status.code; code != 0 || !strings.Contains(table.String(), "open") {
		t.Errorf("status: %d %s %s", code, &table, status.stderr)
	}
	up.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(300 * time.Millisecond); return false })
	var wg sync.WaitGroup
	wg.Go(func() {
		if code, _ := fetch(t, npm+"/a/-/a-1.0.0.tgz"); code != 200 {
			t.Errorf("the request at work ended with %d", code)
		}
	})
	for up.Count() < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	p.stop()
	wg.Wait()
	if code := <-p.code; code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := start(t, "serve", "--listen", l.Addr().String(), "--npm", "http://127.0.0.1:1", "--data", t.TempDir())
	if code := <-p.code; code != 1 || !strings.Contains(p.stderr.String(), "choose another address with --listen") {
		t.Errorf("occupied address: %d %s", code, p.stderr)
	}
	p = start(t, "serve", "--listen", "nonsense", "--npm", "ftp://x")
	if code := <-p.code; code != 2 || !strings.Contains(p.stderr.String(), "listen") || !strings.Contains(p.stderr.String(), "mounts.npm.public") {
		t.Errorf("bad settings: %d %s", code, p.stderr)
	}
	p = start(t, "status", "--admin", "http://127.0.0.1:1")
	if code := <-p.code; code != 1 || !strings.Contains(p.stderr.String(), "is it running") {
		t.Errorf("no gate: %d %s", code, p.stderr)
	}
}

// The status command shows the token of the admin listener, and says what the listener answers to
// one that has none.
func TestStatusWithToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	file := filepath.Join(t.TempDir(), "ecluse.yaml")
	for name, text := range map[string]string{
		token: "s3cret\n", file: "admin: {tokenFile: '" + token + "'}\nmounts: {npm: {enabled: false}, pypi: {public: 'http://127.0.0.1:1/'}}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", t.TempDir())
	admin := p.address(t)
	for p.lines.Scan() && !strings.HasPrefix(p.lines.Text(), "Python index") {
		continue
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--token-file", token}, 0, ""},
		{nil, 1, "admin.tokenFile"},
		{[]string{"--token-file", file + ".gone"}, 64, "--token-file"},
	} {
		status := start(t, append([]string{"status", "--admin", admin}, c.args...)...)
		for status.lines.Scan() {
			continue
		}
		if code := <-status.code; code != c.code || !strings.Contains(status.stderr.String(), c.says) {
			t.Errorf("%v: %d %s", c.args, code, status.stderr)
		}
	}
	p.stop()
	if code := <-p.code; code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
}
