package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// modes are what happens at a step: it fails and does nothing, it fails and has its effect all the
// same, or the process dies behind it. To die before a step is to die behind the one before it.
var modes = []string{"error", "error but landed", "killed"}

var errDisk = errors.New("input/output error")

type killed struct{}

// Style 3, S94, S101 to S105 and the crash table: every system call of a whole run fails, with and
// without its effect, or the process is killed at it. Whatever was acknowledged is there
// afterwards; the verdict is that of the call before or of the call itself; the next run can open
// the journal; and a failure lets no further request begin. tc-084, tc-086: what was known before
// is known after.
func TestEveryStepFails(t *testing.T) {
	verdicts := prefixes(t)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			calls := script() // its calls have state
			for k := 0; ; k += stride() {
				s := start(journaltest.Dir(t)+"/j", journal.Options{})
				done, err, reached := playFailing(s, calls, k, mode)
				if !reached {
					if k < 150 {
						t.Fatalf("only %d steps in a whole run", k)
					}
					return
				}
				if err == nil {
					t.Fatalf("step %d: no error", k)
				}
				checkAfter(t, s, k, done, verdicts)
			}
		})
	}
}

// stride leaves steps out under -short.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// playFailing plays until step k, which fails in the given way.
func playFailing(s *state, calls []call, k int, mode string) (done int, err error, reached bool) { //nolint:revive // the error is a finding here
	n := 0
	s.opt.Around = func(step, name string, call func() error) error {
		if n++; n-1 != k {
			return unsynced.Around(step, name, call)
		}
		reached = true
		if mode == "error but landed" || mode == "killed" {
			if err := call(); err != nil {
				return err
			}
		}
		if mode == "error" || mode == "error but landed" {
			return errDisk
		}
		panic(killed{})
	}
	for done = range calls {
		if err = s.once(calls[done]); err != nil {
			break
		}
	}
	if err == nil {
		done = len(calls)
	}
	// A failure must be latched: no request can begin any more.
	if s.j != nil && err != nil && s.j.Failed() != nil {
		if _, e := s.j.Begin(noon.Add(time.Hour), journal.Request{Method: "GET", URL: listURL}); !errors.Is(e, errDisk) {
			err = fmt.Errorf("a request began after a failure: %w", e)
		}
	}
	s.close()
	return done, err, reached
}

func (s *state) once(c call) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			err = errors.New("killed")
		}
	}()
	return c.do(s)
}

// checkAfter compares the folder with what was acknowledged.
func checkAfter(t *testing.T, s *state, k, done int, verdicts []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.dir, pendingName)); s.marker == "yes" && err != nil || s.marker == "no" && err == nil {
		t.Errorf("step %d: the marker should be there: %s, but: %v", k, s.marker, err)
	}
	opened, err := journal.Open(s.dir, layout, journal.Options{})
	v := ""
	if err == nil {
		v = verdict(opened.Record(), nil, reviewTime)
		for name, digest := range s.entries {
			e, ok := opened.Record().Entry(name)
			if r, recorded := opened.Record().Restriction(digest); recorded {
				e.Digest, ok = r.Digest, true
			}
			if !ok || e.Digest != digest {
				t.Errorf("step %d: the acknowledged entry %s is lost", k, name)
			}
		}
		opened.Close()
	} else {
		v = codeOf(err)
	}
	allowed := verdicts[done : done+2]
	// Create has steps of its own: no folder, an empty folder, a folder with run.json
	if done == 0 {
		allowed = append([]string{"file-upload-provenance-missing"}, allowed...)
	}
	if !slices.Contains(allowed, v) {
		t.Errorf("step %d in call %d: the next run says %q (%v), want one of %q", k, done, v, err, allowed)
	}
}
