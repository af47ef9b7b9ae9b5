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

func (s *set) close() { s.edition.Close() }

// all are the lines, in no order.
func (s *set) all() []string {
	s.refresh()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.lines))
}

// has looks for a line, in the file too if it has changed.
func (s *set) has(line string) bool {
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
// is known until the process ends, and written with the next line.
func (s *set) add(line string) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.has(line) {
		return false
	}
	var err error
	if s.shared != nil {
		err = s.write(line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[line] = struct{}{}
	if err != nil {
		s.unwritten[line] = struct{}{}
		s.complain("what is known of private names cannot be written down; a restart forgets it, and may offer the public package of a "+
			"private name; check that the data folder is writable and not full", err)
		return true
	}
	clear(s.unwritten)
	s.ailing.Store(false)
	return true
}

// write adds a line to the file, and what earlier writes could not.
func (s *set) write(line string) error {
	if err := durable.MakeAll(filepath.Dir(s.shared.Path())); err != nil {
		return err
	}
	return s.shared.Update(func(old *durable.Edition) ([]byte, error) {
		if old.Err != nil {
			return nil, old.Err
		}
		all := s.parse(old.Content)
		all[line] = struct{}{}
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
