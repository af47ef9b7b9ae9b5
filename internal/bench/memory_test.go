package bench_test

import (
	"os"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// Issue "speed": a gate at rest takes less than 40 MB, and one that was asked for many times more documents than it may keep, its budget
// and a fifth. Area memory, C43.
func TestMemoryOfTheProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("SKIPPED: the system does not tell the memory of a process")
	}
	g := startGate(t, manyPackages(t, packument.Generate(stencil, 118, 1)), "cache: {maxBytes: 64MiB, diskBytes: 0}")
	idle := g.memory(t, "VmRSS")
	if idle > 40e6 {
		t.Errorf("an idle gate takes %d bytes", idle)
	}
	askForMany(t, g, 1000)
	full := g.memory(t, "VmRSS")
	t.Logf("idle %d, full %d, peak %d", idle, full, g.memory(t, "VmHWM"))
}
