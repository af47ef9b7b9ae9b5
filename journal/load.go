package journal

import (
	"errors"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// store is where the loader reads: a folder, or the files of a bundle.
type store interface {
	List(maxNames int) (names, leftovers []string, err error)
	Read(name string, maxBytes int64) ([]byte, error)
}

// maxLeftovers is how many temporary files of killed runs a folder may hold besides its files.
const maxLeftovers = 256

// load reads and checks everything. The record holds what could be read; faults are in the order of
// importance, and empty when the journal is sound.
func load(from store, l *Layout) (*Record, []*Error) {
	r := newRecord(l)
	names, leftovers, err := from.List(l.MaxFiles() + maxLeftovers)
	switch {
	case durable.CodeOf(err) == durable.CodeUnsafe:
		return r, []*Error{l.fault(CodeMissing, "", "", "the folder has more than %d files", l.MaxFiles())}
	case err != nil:
		return r, []*Error{{Code: CodeUnreadable, Prefix: l.prefix(), Err: err}}
	case len(names) > l.MaxFiles():
		return r, []*Error{l.fault(CodeMissing, "", "", "the folder has %d files, more than %d", len(names), l.MaxFiles())}
	}
	for _, temp := range leftovers {
		r.warnings = append(r.warnings, "a temporary file of an interrupted process was left: "+temp)
	}
	ld := loader{from: from, l: l, r: r}
	ld.required(names)
	ld.found(names)
	for _, name := range names {
		if name != l.founding() {
			ld.file(name)
		}
	}
	slices.SortFunc(r.restrictions, func(a, b Restriction) int { return a.Number - b.Number })
	ld.faults = append(ld.faults, r.faults()...)
	if len(ld.faults) == 0 && l.Check != nil {
		if err := l.Check(r); err != nil {
			ld.faults = append(ld.faults, l.foreign("", err))
		}
	}
	return r, ld.faults
}

// loadDir is load for a folder: what is kept beside it counts too.
func loadDir(from store, d *durable.Dir, l *Layout) (*Record, []*Error) {
	r, faults := load(from, l)
	if len(faults) == 0 {
		if f := l.compare(d, r); f != nil {
			faults = append(faults, f)
		}
	}
	return r, faults
}

type loader struct {
	from   store
	l      *Layout
	r      *Record
	faults []*Error
}

func (ld *loader) add(err error) {
	if err != nil {
		ld.faults = append(ld.faults, ld.l.foreign("", err))
	}
}

// required reports absent entries first: without them nothing else can be judged.
func (ld *loader) required(names []string) {
	for i, t := range ld.l.Types {
		if name := t.Name + ".json"; (t.Required || i == 0) && t.Max == 0 && !slices.Contains(names, name) {
			ld.add(ld.l.fault(CodeMissing, name, "", "the entry is missing; nothing can replace it"))
		}
	}
}

// found reads the founding entry, to which all others are bound.
func (ld *loader) found(names []string) {
	name := ld.l.founding()
	if !slices.Contains(names, name) {
		return
	}
	ld.add(ld.read(name))
}

// read reads, unseals and places one file.
func (ld *loader) read(name string) error {
	data, err := ld.from.Read(name, strictjson.MaxBytes)
	if err != nil {
		return ld.l.foreign(name, err)
	}
	e, err := ld.l.unseal(name, data)
	if err != nil {
		return err
	}
	if name == pendingName {
		ld.r.marker = data
	}
	return ld.l.place(ld.r, e)
}

func (ld *loader) file(name string) {
	if _, _, ok := ld.l.split(name); !ok && name != pendingName {
		ld.add(ld.l.fault(CodeInvalid, name, "", "is not a file of this journal"))
		return
	}
	ld.add(ld.read(name))
}

// place checks one entry by itself and puts it into the record. It changes the record only if the
// entry is sound.
func (l *Layout) place(r *Record, e Entry) error {
	if e.Name == pendingName {
		if e.link != nil {
			return l.fault(CodeInvalid, e.Name, "chain", "does not belong to a marker")
		}
		var p marker
		if err := e.Decode(&p); err != nil {
			return l.foreign(e.Name, err)
		}
		if f := p.fault(l, r.planDigest); f != nil {
			return f
		}
		r.pending = &p
		return nil
	}
	t, number, ok := l.split(e.Name)
	if !ok {
		return l.fault(CodeInvalid, e.Name, "", "is not a file of this journal")
	}
	e.Number = number
	if t == nil {
		place := l.placeRestriction
		if strings.HasPrefix(e.Name, typeTransfer+"-") {
			place = l.placeTransfer
		}
		if err := place(r, e); err != nil {
			return err
		}
		return r.enchain(e)
	}
	e.Type = t.Name
	return l.placeEntry(r, t, e)
}

// placeEntry is place for one of the caller's entries.
func (l *Layout) placeEntry(r *Record, t *Type, e Entry) error {
	var facts Facts
	if t.Facts != nil {
		var err error
		if facts, err = t.Facts(e); err != nil {
			return l.foreign(e.Name, err)
		}
	}
	if e.Name == l.founding() {
		digest := e.Digest
		if l.PlanDigest != nil {
			var err error
			if digest, err = l.PlanDigest(e); err != nil {
				return l.foreign(e.Name, err)
			}
		}
		if !strictjson.IsDigest(digest) {
			return l.fault(CodeInvalid, e.Name, "", "gives no plan digest")
		}
		r.planDigest = digest
	}
	r.entries[e.Name], r.facts[e.Name] = e, facts
	return r.enchain(e)
}

func (l *Layout) placeRestriction(r *Record, e Entry) error {
	var b stored
	if err := e.Decode(&b); err != nil {
		return l.foreign(e.Name, err)
	}
	if f := b.fault(l, e, r.planDigest); f != nil {
		return f
	}
	r.restrictions = append(r.restrictions, b.restriction(e))
	return nil
}

// Read loads a journal without changing anything, under a lock that it shares with other readers.
// Every fault is an error.
func Read(dir string, l *Layout) (*Record, error) {
	r, faults, err := Inspect(dir, l)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return r, nil
}

// Inspect is [Read] for a report: it returns all faults, and whatever of the journal could be read.
// The error is only about the folder itself: not private, absent, or locked.
func Inspect(dir string, l *Layout) (*Record, []*Error, error) {
	if err := l.validate(); err != nil {
		return nil, nil, err
	}
	d, err := durable.Open(dir, durable.Options{})
	if err != nil {
		return nil, nil, l.folder(err)
	}
	err = d.Lock(true)
	if err != nil {
		return nil, nil, errors.Join(l.folder(err), d.Close())
	}
	r, faults := loadDir(d, d, l)
	return r, faults, d.Close()
}
