//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
	"github.com/ecluse-gate/ecluse/internal/emulator"
)

// The largest file that there is, 100 MiB, is planned, hashed and sent by the real binary in less
// than 40 MB of memory: it streams, and is nowhere twice.
func TestLargeFileInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary and sends 100 MiB")
	}
	dir := durabletest.Dir(t)
	binary := filepath.Join(dir, "ecluse")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	e, err := emulator.New(emulator.Options{Tier: "s1"})
	must(t, err)
	server := httptest.NewServer(e)
	defer server.Close()
	must(t, os.Mkdir(filepath.Join(dir, "docs"), 0o700))
	file, err := os.Create(filepath.Join(dir, "docs/large.txt"))
	must(t, err)
	_, err = file.WriteString("a large file of text\n")
	must(t, err)
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = 'x'
	}
	for range 99 {
		_, err = file.Write(chunk)
		must(t, err)
	}
	must(t, file.Truncate(100<<20))
	must(t, file.Close())
	must(t, os.WriteFile(filepath.Join(dir, "request.json"), fmt.Appendf(nil, `{"schema_version":"1.0","kind":"file","endpoint":%q,"name":"manuals","owner":"team@x",
		"local_root":%q,"paths":["large.txt"],"service_tier":"s1","extraction_mode":"minimal","api_version":"2026-10-01"}`, server.URL, filepath.Join(dir, "docs")), 0o600))

	run := func(args ...string) (peak int64) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, &out)
				}
				return peak
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, peakOf(cmd.Process.Pid))
			}
		}
	}
	run("source", "plan", "--emulator", "--request", "request.json", "--out", "plan.json")
	data, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "approved.json"), approve(t, data), 0o600))
	began := time.Now()
	peak := run("source", "apply", "approved.json", "--emulator", "--journal", "journal", "--receipts", "receipts")
	t.Logf("%d MB at most, %v", peak/1e6, time.Since(began))
	if peak == 0 || peak > 40e6 {
		t.Errorf("%d bytes of memory, more than 40 MB", peak)
	}
	if files := e.State().Sources[0].Files; len(files) != 1 || files[0].Bytes != 100<<20 {
		t.Errorf("files %+v", files)
	}
}

// peakOf reads the most memory that a running program has had. The exit status would count what
// this test had before it began the program.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
