package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// target is what one server is asked for, over and over.
type target struct {
	name    string // "" for the gate itself
	process process
	path    string
	header  string // one "Name: value", or empty
	status  int    // 0: 200
	// it answers a few times a second: four clients are enough for it, and two seconds are not
	slow bool
	gate gate // set for the gate
}

// load is what a load generator measured.
type load struct {
	rate, p50, p99 float64 // requests a second, milliseconds
	cpu            float64 // microseconds of the server for each request
}

// ofGate is a target of a gate.
func ofGate(g gate, path, header string) target {
	return target{process: g.process, gate: g, path: path, header: header}
}

// wrk runs the load generator on a target and checks that it got what it should.
func wrk(b *testing.B, t target, clients int) load {
	b.Helper()
	bin, ok := lookPath("wrk")
	if !ok {
		// go test says nothing of it
		fmt.Printf("SKIPPED: %s: wrk is not installed; make setup brings it\n", b.Name())
		b.SkipNow()
	}
	size := check(b, t)
	seconds := 2 + clients/500 // many need a while to connect
	if t.slow {
		clients, seconds = 4, 10
	}
	if t.gate.profile != "" {
		seconds = 5
		t.gate.signal(b)
	}
	args := []string{
		"-c", `ulimit -n "$(ulimit -Hn)"; exec "$@"`, "sh", bin, "-t", threads(), "-c", fmt.Sprint(clients),
		"-d", fmt.Sprintf("%ds", seconds), "--timeout", "60s", "-s", "testdata/report.lua",
	}
	if t.header != "" {
		args = append(args, "-H", t.header)
	}
	before := t.process.cpu()
	out, err := exec.Command("sh", append(args, t.process.url+t.path)...).CombinedOutput()
	if err != nil {
		b.Fatalf("wrk: %v\n%s", err, out)
	}
	used := t.process.cpu() - before
	if t.gate.profile != "" {
		t.gate.signal(b)
		keepProfile(b, t.gate.profile)
	}
	var requests, micros, read, broken, failed int64
	var p50, p99 float64
	_, result, _ := bytes.Cut(out, []byte("RESULT "))
	if _, err := fmt.Sscan(string(result), &requests, &micros, &read, &broken, &failed, &p50, &p99); err != nil {
		b.Fatalf("wrk said: %s", out)
	}
	bad := failed
	if t.status >= 400 {
		bad = requests - failed
	}
	if broken > 0 || bad > 0 || requests == 0 || read/requests < size {
		b.Fatalf("%s%s: %d requests, %d broken, %d with another status, %d bytes", t.process.url, t.path, requests, broken, bad, read)
	}
	return load{
		rate: float64(requests) / (float64(micros) / 1e6), p50: p50 / 1e3, p99: p99 / 1e3,
		cpu: float64(used.Microseconds()) / float64(requests),
	}
}

// threads is how many threads the load generator has: 1, or what BENCH_WRK_THREADS says. One is
// never the bottleneck. Two keep both cores of a small machine busy, so that the slowest percent
// tells how long the server waited for a core.
func threads() string {
	if n := os.Getenv("BENCH_WRK_THREADS"); n != "" {
		return n
	}
	return "1"
}

// check asks once, and looks at the status and the size, which the load generator does not.
func check(b *testing.B, t target) (size int64) {
	b.Helper()
	status, _, size := ask(b, t.process.url+t.path, t.header)
	if want := max(t.status, http.StatusOK); status != want {
		b.Fatalf("%s%s: status %d, want %d", t.process.url, t.path, status, want)
	}
	return size
}

// ask sends one request and reads the answer.
func ask(tb testing.TB, url, header string) (status int, answer http.Header, size int64) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	if name, value, ok := strings.Cut(header, ": "); ok {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	size, err = io.Copy(io.Discard, resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, resp.Header, size
}

// keepProfile puts a profile into the folder that BENCH_PROFILE names, under the benchmark's name.
func keepProfile(b *testing.B, file string) {
	b.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	name := strings.NewReplacer("/", "-", "=", "-").Replace(b.Name()) + ".pprof"
	if err := os.WriteFile(filepath.Join(os.Getenv("BENCH_PROFILE"), name), content, 0o600); err != nil {
		b.Fatal(err)
	}
}

// compare measures the gate and then its peers, one after the other, as one benchmark. With -count
// each repetition is another round of all of them, so that the ratios are of measurements that
// follow each other. A peer that is not installed is left out, loudly.
func compare(b *testing.B, name string, clients int, gate target, peers ...target) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		own := wrk(b, gate, clients)
		b.ReportMetric(0, "ns/op") // it would be the time of the whole round
		b.ReportMetric(own.rate, "req/s")
		b.ReportMetric(own.p50, "p50-ms")
		b.ReportMetric(own.p99, "p99-ms")
		b.ReportMetric(own.cpu, "cpu-us/req")
		for _, peer := range peers {
			if peer.process.url == "" {
				b.Logf("SKIPPED: %s is not installed; make setup brings it", peer.name)
				continue
			}
			other := wrk(b, peer, clients)
			b.ReportMetric(other.rate, peer.name+"-req/s")
			b.ReportMetric(other.p99, peer.name+"-p99-ms")
			b.ReportMetric(other.cpu, peer.name+"-cpu-us/req")
			b.ReportMetric(own.rate/other.rate, "ratio/"+peer.name)
		}
	})
}
