//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// traced are the system calls that change the disk, or make or prove a change permanent, and those
// that the run's output needs.
const traced = "mkdirat,openat,write,fsync,pread64,linkat,unlinkat,flock"

// call is one system call of the run's own thread.
type call struct {
	name string
	nth  int    // among the calls of this name on the thread, from 1
	what string // the file that it is about, temporary names replaced by what they become
}

// trace runs the command once and lists its calls.
func trace(t *testing.T) []call {
	t.Helper()
	v := newVictim(t)
	out := v.path("trace")
	v.run("strace", "-f", "-qq", "-s", "120", "-o", out, "-e", "trace="+traced)
	data, err := os.ReadFile(out)
	must(t, err)
	lines := strings.Split(string(data), "\n")
	thread, _, _ := strings.Cut(lines[0], " ")
	becomes := map[string]string{}
	link := regexp.MustCompile(`linkat\(\d+, "([^"]+)", \d+, "([^"]+)"`)
	for _, l := range lines {
		if m := link.FindStringSubmatch(l); m != nil {
			becomes[m[1]] = m[2]
		}
	}
	return calls(lines, thread, becomes)
}

func calls(lines []string, thread string, becomes map[string]string) []call {
	var all []call
	count := map[string]int{}
	open := regexp.MustCompile(`^(\w+)\(`)
	quoted := regexp.MustCompile(`"([^"]*)"`)
	current := ""
	for _, l := range lines {
		pid, rest, _ := strings.Cut(l, " ")
		rest = strings.TrimSpace(rest)
		m := open.FindStringSubmatch(rest)
		if pid != thread || m == nil {
			continue
		}
		count[m[1]]++
		if name := quoted.FindStringSubmatch(rest); name != nil && m[1] != "write" {
			current = name[1]
			if final := becomes[current]; final != "" {
				current = "temporary " + final
			}
		}
		all = append(all, call{m[1], count[m[1]], current})
	}
	return all
}

// sites picks the calls to die at: every call that gives a name or takes one away, and of the
// others each call site once, which is the kind of call on the kind of file. ECLUSE_TEST_FULL=1
// takes every call there is.
func sites(all []call) []call {
	var chosen []call
	seen := map[string]bool{}
	digits := regexp.MustCompile(`[0-9a-f]{4,}`)
	for _, c := range all {
		if c.what == "" || strings.HasPrefix(c.what, "/sys") || strings.HasPrefix(c.what, "/proc") {
			continue // the runtime's own start
		}
		site := c.name + " " + digits.ReplaceAllString(c.what, "#")
		names := c.name == "linkat" || c.name == "unlinkat" && c.what == "pending-request.json"
		if names || !seen[site] || os.Getenv("ECLUSE_TEST_FULL") != "" {
			chosen = append(chosen, c)
		}
		seen[site] = true
	}
	return chosen
}

// The kernel kills the run at the system calls of its own work, found by a first traced run.
func TestKilledAtEverySystemCall(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	if err := exec.Command("strace", "-o", "/dev/null", "true").Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "true" {
			t.Fatal("strace is missing; make setup installs it")
		}
		t.Skipf("NO STRACE: the kill matrix over system calls was not run: %v", err)
	}
	all := trace(t)
	chosen := sites(all)
	t.Logf("%d system calls, %d of them to die at", len(all), len(chosen))
	if len(chosen) < 60 {
		t.Fatalf("only %d places: %v", len(chosen), chosen)
	}
	verdicts := make(chan string, len(chosen))
	t.Run("calls", func(t *testing.T) {
		for half := range 2 {
			t.Run(fmt.Sprint("half ", half), func(t *testing.T) {
				t.Parallel()
				for i := half; i < len(chosen); i += 2 {
					c := chosen[i]
					t.Run(fmt.Sprintf("%s %d %s", c.name, c.nth, c.what), func(t *testing.T) {
						v := newVictim(t)
						v.run("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace="+c.name, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", c.name, c.nth))
						verdicts <- v.after()
					})
				}
			})
		}
	})
	close(verdicts)
	count := map[string]int{}
	for v := range verdicts {
		count[v]++
	}
	t.Logf("verdicts: %v", count)
	for _, v := range []string{"provenance", "unresolved", "waiting", "go"} {
		if count[v] == 0 {
			t.Errorf("no death led to %q", v)
		}
	}
}
