//go:build linux

package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
	"github.com/ecluse-gate/ecluse/internal/emulator"
)

// The largest file that there is, 100 MiB, is planned, hashed and sent by the real binary in less than 40 MB of memory: it streams, and is nowhere
// twice.
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

	run := func(args ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return cmd
	}
	run("source", "plan", "--emulator", "--request", "request.json", "--out", "plan.json")
	data, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "approved.json"), approve(t, data), 0o600))
	began := time.Now()
	cmd := run("source", "apply", "approved.json", "--emulator", "--journal", "journal", "--receipts", "receipts")
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	t.Logf("%d MB at most, %v", peak/1e6, time.Since(began))
	if peak > 40e6 {
		t.Errorf("%d bytes of memory, more than 40 MB", peak)
	}
	if files := e.State().Sources[0].Files; len(files) != 1 || files[0].Bytes != 100<<20 {
		t.Errorf("files %+v", files)
	}
}
