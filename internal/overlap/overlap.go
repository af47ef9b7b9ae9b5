// Package overlap remembers which names the private registries have: those that hide their public
// namesakes, in a file of the data folder, and those whose versions are served beside public ones,
// for as long as the process runs. What the gate's own mirror copied there is no such name. Package
// overlap decides nothing about requests.
package overlap

import (
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// The files of the data folder. Each line of one is an ecosystem and a name, and of the other the
// name of a file after them, so that a person can take one out.
const (
	NamesFile  = "private-names.txt"
	CopiesFile = "mirrored-files.txt"
)

const maxMerged = 65536 // names that are remembered of an ecosystem in memory

// Entry is one name.
type Entry struct {
	Ecosystem string `json:"ecosystem"`
	Package   string `json:"package"`
	// Shadowed tells that the public package of this name is hidden; else both are served.
	Shadowed bool `json:"shadowed"`
}

// line is a name as the file has it.
func (e Entry) line() string { return e.Ecosystem + " " + e.Package }

// Book holds the names of all mounts, and what their mirrors copied. It is safe for concurrent use.
type Book struct {
	hidden, copies *set
	logger         *slog.Logger
	metrics        *obs.Metrics

	mu     sync.RWMutex
	merged map[string]map[string]bool // by ecosystem; guarded by mu
}

// Open reads what the data folder holds; an empty one keeps nothing.
func Open(dataDir string, logger *slog.Logger, metrics *obs.Metrics) *Book {
	b := &Book{logger: logger, metrics: metrics, merged: map[string]map[string]bool{}}
	b.hidden = openSet(dataDir, NamesFile, 2, logger)
	b.copies = openSet(dataDir, CopiesFile, 3, logger)
	b.gauge()
	return b
}

// Close lets go of the files. No request may be at work.
func (b *Book) Close() {
	b.hidden.close()
	b.copies.close()
}

// Entries are all names, sorted.
func (b *Book) Entries() []Entry {
	var all []Entry
	for _, line := range b.hidden.all() {
		ecosystem, name, _ := strings.Cut(line, " ")
		all = append(all, Entry{Ecosystem: ecosystem, Package: name, Shadowed: true})
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for ecosystem, names := range b.merged {
		for name := range names {
			all = append(all, Entry{Ecosystem: ecosystem, Package: name})
		}
	}
	slices.SortFunc(all, func(x, y Entry) int { return strings.Compare(x.line(), y.line()) })
	return all
}

// gauge shows how many names there are.
func (b *Book) gauge() {
	counts := map[string]int{}
	for _, line := range b.hidden.all() {
		ecosystem, _, _ := strings.Cut(line, " ")
		counts[ecosystem]++
	}
	for ecosystem, n := range counts {
		b.metrics.Overlap(ecosystem, "shadow", n)
	}
}

// hide writes a name down before it returns.
func (b *Book) hide(e Entry) {
	if b.hidden.add(e.line()) {
		b.gauge()
		b.logger.Info("the private registry has this name; its public namesake is hidden from now on", obs.Ecosystem(e.Ecosystem), obs.Package(e.Package))
	}
}

// Copy writes down that the mirror is about to copy a public file into the private registry, which
// does not have it.
func (b *Book) Copy(ecosystem, name, file string) { b.copies.add(copyLine(ecosystem, name, file)) }

func copyLine(ecosystem, name, file string) string { return ecosystem + " " + name + " " + file }

// Options are how one mount takes names that its private registry has.
type Options struct {
	Ecosystem string
	// Shadow hides their public namesakes.
	Shadow bool
}

// Mount is the part of the book for one mount.
func (b *Book) Mount(o Options) *Names { return &Names{b, o} }

// merge counts a name once, and says so.
func (b *Book) merge(e Entry) {
	b.mu.RLock()
	known := b.merged[e.Ecosystem][e.Package]
	b.mu.RUnlock()
	if known {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	names := b.merged[e.Ecosystem]
	if names == nil {
		names = map[string]bool{}
		b.merged[e.Ecosystem] = names
	}
	if names[e.Package] || len(names) == maxMerged {
		return
	}
	names[strings.Clone(e.Package)] = true // it is a part of a request's address
	b.metrics.Overlap(e.Ecosystem, "merge", len(names))
	b.logger.Warn("the private and the public registry both have this name, and versions of both are served; if it is yours, "+
		"list it in firstParty or set overlap: shadow", obs.Ecosystem(e.Ecosystem), obs.Package(e.Package))
}

// Names are the names of one mount. Nil knows none.
type Names struct {
	book *Book
	opts Options
}

func (n *Names) entry(name string) Entry { return Entry{Ecosystem: n.opts.Ecosystem, Package: name} }

// ours reports whether a private listing holds anything that is not a copy of the mirror's. What
// cannot be read is no copy.
func (n *Names) ours(name string, private registry.Document) bool {
	return private.Dropped() > 0 || slices.ContainsFunc(private.Versions(), func(v registry.Version) bool {
		return len(v.Artifacts) == 0 || !n.book.copies.has(copyLine(n.opts.Ecosystem, name, v.Artifacts[0].File))
	})
}

// Private takes in what the private registry has of a name; nil is nothing. If that hides its
// public namesake, it is remembered for good when Private returns.
func (n *Names) Private(name string, doc registry.Document) {
	if n == nil || doc == nil || !n.opts.Shadow {
		return
	}
	if e := n.entry(name); !n.book.hidden.has(e.line()) && n.ours(name, doc) {
		n.book.hide(e)
	}
}

// Hide tells whether the public package of a name is hidden, since the private registry was once
// seen to have the name.
func (n *Names) Hide(name string) bool {
	return n != nil && n.opts.Shadow && n.book.hidden.has(n.entry(name).line())
}

// Both counts a name of which versions of both registries are served.
func (n *Names) Both(name string, private registry.Document) {
	if n != nil && n.ours(name, private) {
		n.book.merge(n.entry(name))
	}
}
