package bench_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// R88: the kernel copies a kept file to the client; the process does not read it.
func TestKeptFileIsSentByTheKernel(t *testing.T) {
	strace, ok := lookPath("strace")
	if !ok {
		if os.Getenv("CI") == "true" {
			t.Fatal("strace is missing; make setup installs it")
		}
		t.Skip("SKIPPED: strace is missing; make setup installs it")
	}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && scope[0] != '0' && os.Geteuid() != 0 {
		t.Skip("SKIPPED: this system lets nobody but root look at a running process")
	}
	g := startGate(t, serve(t, release(distinctFile, func(w http.ResponseWriter, f []byte) { _, _ = w.Write(f) })), warm)
	file := g.url + "p/-/p-1.0.0.tgz"
	ask(t, file, "") // from the registry; kept before the last byte leaves, or soon after
	time.Sleep(200 * time.Millisecond)
	log := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-q", "-e", "trace=sendfile", "-o", log, "-p", strconv.Itoa(g.pid))
	launch(t, cmd)
	sent := regexp.MustCompile(`sendfile(?:64)?\(.*= (\d+)`)
	for range 100 { // strace says nowhere that it has begun
		time.Sleep(50 * time.Millisecond)
		if _, _, size := ask(t, file, ""); size != 10<<20 {
			t.Fatalf("%d bytes", size)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			continue
		}
		total := 0
		for _, call := range sent.FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(call[1]))
			total += n
		}
		if total >= 10<<20-4<<10 { // the first piece may go with the header
			return
		}
	}
	text, _ := os.ReadFile(log)
	t.Errorf("the file did not pass through sendfile: %.2000s", text)
}
