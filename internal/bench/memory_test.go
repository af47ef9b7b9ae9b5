package bench_test

import (
	"os"
	"testing"
	"time"
)

// Issue "speed": a gate at rest takes less than 40 MB, all of the process. Area memory. What it may
// keep is bounded by TestThousandDocumentsStayWithinTheBudget of internal/app.
func TestIdleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("SKIPPED: the system does not tell the memory of a process")
	}
	g := startGate(t, "http://127.0.0.1:9", "")
	if status, _, _ := ask(t, g.admin, ""); status != 200 {
		t.Fatalf("status page: %d", status)
	}
	time.Sleep(200 * time.Millisecond)
	if rss := g.memory(t, "VmRSS"); rss > 40e6 {
		t.Errorf("an idle gate takes %d bytes", rss)
	}
}
