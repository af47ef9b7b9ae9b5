package overlap

import (
	"bytes"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// maxFile bounds each file; about a million lines.
const maxFile = 64 << 20

// set is a set of lines in a file that several processes, and people, read and change.
type set struct {
	shared *durable.Shared // nil: nothing is kept
	words  int             // in a line
	logger *slog.Logger
	ailing atomic.Bool // the last read or write failed, which was said

	pending atomic.Bool  // something is unwritten
	tried   atomic.Int64 // when a write failed last, in Unix nanoseconds

	writing sync.Mutex // held by the one write that is at work, on purpose across its I/O

	mu        sync.RWMutex        // guards all below
	edition   *durable.Edition    // what was read last
	lines     map[string]struct{} // of the file, and the unwritten
	unwritten map[string]struct{} // what could not be written
}

func openSet(dataDir, name string, words int, logger *slog.Logger) *set {
	s := &set{words: words, logger: logger, lines: map[string]struct{}{}, unwritten: map[string]struct{}{}}
	if dataDir != "" {
		s.shared = durable.NewShared(filepath.Join(dataDir, name), maxFile, durable.Options{})
		s.refresh()
	}
	return s
}

func (s *set) close() {
	if s.pending.Load() {
		s.retry()
	}
	s.edition.Close()
}

// retryAfter is how long a write that failed is not tried again.
const retryAfter = 10 * time.Second

// retry writes what could not be written.
func (s *set) retry() {
	if !s.writing.TryLock() {
		return
	}
	defer s.writing.Unlock()
	s.settle(s.write())
}

// settle takes in how a write ended; the caller holds writing.
func (s *set) settle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.pending.Store(true)
		s.tried.Store(time.Now().UnixNano())
		s.complain("what is known of private names cannot be written down; a restart forgets it, and may offer the public package of a "+
			"private name; check that the data folder is writable and not full", err)
		return
	}
	clear(s.unwritten)
	s.pending.Store(false)
	s.ailing.Store(false)
}

// all are the lines, in no order.
func (s *set) all() []string {
	s.refresh()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.lines))
}

// has looks for a line, in the file too if it has changed.
func (s *set) has(line string) bool {
	if s.pending.Load() && time.Since(time.Unix(0, s.tried.Load())) >= retryAfter {
		s.retry()
	}
	return s.found(line)
}

func (s *set) found(line string) bool {
	if s.knows(line) {
		return true
	}
	s.refresh()
	return s.knows(line)
}

func (s *set) knows(line string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.lines[line]
	return ok
}

// refresh takes over what this or another process, or a person, has written since the last look.
func (s *set) refresh() {
	if s.shared == nil {
		return
	}
	s.mu.RLock()
	current := s.edition.Current()
	s.mu.RUnlock()
	if current {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.edition.Current() {
		return
	}
	s.edition.Close()
	s.edition = s.shared.Read()
	if err := s.edition.Err; err != nil { // what is known stays known
		s.complain("what is known of private names cannot be read; this process goes on with what it knows", err)
		return
	}
	s.lines = s.parse(s.edition.Content)
	maps.Copy(s.lines, s.unwritten)
}

// complain says once what fails again and again.
func (s *set) complain(what string, err error) {
	if !s.ailing.Swap(true) {
		s.logger.Error(what, slog.String("file", s.shared.Path()), obs.Err(err))
	}
}

// parse reads the file. What is no line of ours is a person's note.
func (s *set) parse(content []byte) map[string]struct{} {
	out := map[string]struct{}{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) == s.words {
			out[strings.Join(fields, " ")] = struct{}{}
		}
	}
	return out
}

// add writes a line down before it returns, and reports whether it is new. What cannot be written
// is known until the process ends, and tried again.
func (s *set) add(line string) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.found(line) {
		return false
	}
	s.mu.Lock()
	s.lines[line], s.unwritten[line] = struct{}{}, struct{}{}
	s.mu.Unlock()
	s.settle(s.write())
	return true
}

// write adds to the file what is not in it yet.
func (s *set) write() error {
	if s.shared == nil {
		return nil
	}
	if err := durable.MakeAll(filepath.Dir(s.shared.Path())); err != nil {
		return err
	}
	return s.shared.Update(func(old *durable.Edition) ([]byte, error) {
		if old.Err != nil {
			return nil, old.Err
		}
		all := s.parse(old.Content)
		s.mu.RLock()
		maps.Copy(all, s.unwritten)
		s.mu.RUnlock()
		var out bytes.Buffer
		for _, l := range slices.Sorted(maps.Keys(all)) {
			out.WriteString(l + "\n")
		}
		return out.Bytes(), nil
	})
}
