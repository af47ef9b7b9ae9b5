package bench_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a server under test. The zero value is one that is not installed.
type process struct {
	url string // with a trailing slash
	pid int
}

// launch runs a program until the test ends. Its output is shown when the test fails.
func launch(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	log := filepath.Join(tb.TempDir(), "stderr")
	out, err := os.Create(log)
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
		if text, err := os.ReadFile(log); err == nil && tb.Failed() {
			tb.Logf("%s: %s", cmd.Path, text[max(0, len(text)-4000):])
		}
	})
}

// firstLines starts a program and gives the URLs that the first lines of its output name, as many
// as asked for.
func firstLines(tb testing.TB, cmd *exec.Cmd, n int) (urls []string) {
	tb.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	launch(tb, cmd)
	for lines := bufio.NewScanner(out); len(urls) < n; {
		if !lines.Scan() {
			tb.Fatalf("%s ended", cmd.Path)
		}
		if _, url, ok := strings.Cut(lines.Text(), "http://"); ok {
			urls = append(urls, "http://"+url)
		}
	}
	return urls
}

// gate is a running `ecluse serve`.
type gate struct {
	process        // the npm mount
	admin   string // with a trailing slash
	profile string // the file of its next profile; empty: it makes none
}

// startGate runs the command in front of a registry, with an empty folder. The YAML is added to its
// configuration, and the variables to its environment.
func startGate(tb testing.TB, registry, yaml string, env ...string) gate {
	tb.Helper()
	bin, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndataDir: '%s'\nmounts: {npm: {public: '%s/'}}\n%s\n", dir, registry, yaml)
	file := filepath.Join(dir, "gate.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	g := gate{}
	cmd := exec.Command(bin, "serve", "--config", file)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}, env...)
	if os.Getenv("BENCH_PROFILE") != "" {
		g.profile = filepath.Join(dir, "profile")
		cmd.Env = append(cmd.Env, "BENCH_PROFILE_FILE="+g.profile)
	}
	urls := firstLines(tb, cmd, 2)
	g.url, g.admin, g.pid = urls[0], urls[1], cmd.Process.Pid
	return g
}

// startPlain runs a plain Go file server over a folder.
func startPlain(tb testing.TB, dir string) process {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "BENCH_PLAIN_SERVER="+dir)
	return process{firstLines(tb, cmd, 1)[0], cmd.Process.Pid}
}

// startNginx runs nginx with one worker: below /disk/ it serves a folder, below /cached/ what a
// server behind it serves, from a cache.
func startNginx(tb testing.TB, dir, upstream string) process {
	tb.Helper()
	own, addr := tb.TempDir(), freeAddress(tb)
	conf := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/err; worker_rlimit_nofile 10000;\n"+
		"events { worker_connections 5000; }\n"+
		"http { access_log off; client_body_temp_path %[1]s/c; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n"+
		"keepalive_requests 1000000000; sendfile on; tcp_nopush on; proxy_cache_path %[1]s/cache keys_zone=z:10m;\n"+
		"upstream up { server %[2]s; keepalive 16; }\nserver { listen %[3]s backlog=4096; location /disk/ { alias %[4]s/; }\n"+
		"location /cached/ { proxy_pass http://up/; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_cache z; proxy_cache_valid 200 1h; } } }",
		own, strings.Trim(strings.TrimPrefix(upstream, "http://"), "/"), addr, dir)
	path := filepath.Join(own, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		tb.Fatal(err)
	}
	return startPeer(tb, addr, "", "nginx", "-c", path)
}

// startVerdaccio runs Verdaccio with a document of a package p in its own storage, and no way out.
func startVerdaccio(tb testing.TB, doc []byte) process {
	tb.Helper()
	bin, err := filepath.Abs("../../testtools/node_modules/verdaccio/bin/verdaccio")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		return process{}
	}
	dir := tb.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "storage/p"), 0o700); err != nil {
		tb.Fatal(err)
	}
	for name, text := range map[string]string{
		"storage/p/package.json":     string(doc),
		"storage/.verdaccio-db.json": `{"list":["p"],"secret":"0123456789abcdef0123456789abcdef"}`,
		"config.yaml": "storage: ./storage\nuplinks: {}\nweb: {enable: false}\nmiddlewares: {audit: {enabled: false}}\n" +
			"packages: {'**': {access: $all}}\nlog: {type: stdout, format: json, level: error}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	addr := freeAddress(tb)
	return startPeer(tb, addr, dir, "node", bin, "-c", "config.yaml", "-l", addr)
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startPeer runs a server until the benchmark ends and waits until it listens. A server that is not
// installed is the zero process.
func startPeer(tb testing.TB, addr, dir, name string, args ...string) process {
	tb.Helper()
	bin, ok := lookPath(name)
	if !ok {
		return process{}
	}
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	launch(tb, cmd)
	for range 1500 {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return process{"http://" + addr + "/", cmd.Process.Pid}
		}
		time.Sleep(20 * time.Millisecond)
	}
	tb.Fatalf("%s did not start", name)
	return process{}
}

// lookPath finds a program, also where only an administrator's PATH looks.
func lookPath(name string) (string, bool) {
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, true
		}
	}
	return "", false
}

// memory reads one line of a process's state in bytes: VmRSS is what it has now, VmHWM the most it
// had.
func (p process) memory(tb testing.TB, line string) int64 {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		tb.Skipf("SKIPPED: the system does not tell the memory of a process: %v", err)
	}
	_, rest, _ := bytes.Cut(text, []byte(line+":"))
	field, _, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
	kib, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kib << 10
}

// cpu is the processor time that a process has used; 0 where the system does not tell.
func (p process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	ticks := int64(0)
	for _, field := range fields[11:13] { // of 10 ms: user, system
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// signal tells the gate to begin or end a profile.
func (g gate) signal(tb testing.TB) {
	tb.Helper()
	if err := syscall.Kill(g.pid, syscall.SIGUSR1); err != nil {
		tb.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
}
