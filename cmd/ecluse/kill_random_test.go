package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/sourcetest"
)

// kills is how many runs are killed at random: few in every test run, and as many as
// ECLUSE_TEST_KILLS says; `make kills` asks for a thousand.
func kills(t *testing.T) int {
	text := os.Getenv("ECLUSE_TEST_KILLS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// Runs that are killed at a random moment, wherever they are: what the crash table says of the
// folder is what the next run says, what was never attempted can be finished, and nothing is ever
// written twice.
func TestKilledAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	n, seed := kills(t), uint64(time.Now().UnixNano())
	t.Logf("%d kills, seed %d", n, seed)
	verdicts := make(chan string, n)
	t.Run("kills", func(t *testing.T) {
		for lane := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(lane))) //nolint:gosec // no secret
				for i := lane; i < n && !t.Failed(); i += runtime.GOMAXPROCS(0) {
					verdicts <- killedOnce(t, random)
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
	if n >= 100 && (count[sourcetest.Unresolved] == 0 || len(count) < 2) {
		t.Errorf("the kills met one kind of moment only: %v", count)
	}
}

// killedOnce kills one run within a few milliseconds of one of its requests, most of them without
// the wait of a throttled upload.
func killedOnce(t *testing.T, random *rand.Rand) (verdict string) {
	at, later := 1+random.IntN(9), time.Duration(random.Int64N(int64(8*time.Millisecond)))
	throttled := random.IntN(5) == 0
	t.Run(fmt.Sprintf("%v after request %d, throttled %v", later, at, throttled), func(t *testing.T) {
		v := newVictim(t)
		if !throttled {
			must(t, v.emulator.SetScript(nil))
		}
		v.killAt, v.phase, v.later = at, "later", later
		v.run()
		verdict = v.after()
	})
	return verdict
}
