package journal

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// Files are the bytes of every file of a journal, by name.
type Files map[string][]byte

// ReadFiles returns the files of a valid journal together with its verified view. A request whose
// end is not known does not matter: moving a journal does not change that. The error is that of
// [Read], and nothing else is returned then.
func ReadFiles(dir string, l *Layout) (Files, *Record, error) {
	if err := l.validate(); err != nil {
		return nil, nil, err
	}
	d, err := durable.Open(dir, durable.Options{})
	if err != nil {
		return nil, nil, l.folder(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Lock(true); err != nil {
		return nil, nil, l.folder(err)
	}
	kept := keeping{d, Files{}}
	r, faults := loadDir(kept, d, l)
	if len(faults) > 0 {
		return nil, nil, faults[0]
	}
	return kept.files, r, nil
}

// keeping is a store that keeps what is read from it.
type keeping struct {
	store
	files Files
}

func (k keeping) Read(name string, maxBytes int64) ([]byte, error) {
	data, err := k.store.Read(name, maxBytes)
	if err == nil {
		k.files[name] = data
	}
	return data, err
}

// Inspect is [Inspect] for files that are not in a folder yet, such as those of a bundle.
func (f Files) Inspect(l *Layout) (*Record, []*Error, error) {
	if err := l.validate(); err != nil {
		return nil, nil, err
	}
	r, faults := load(memory(f), l)
	return r, faults, nil
}

// memory is a store that is a map.
type memory map[string][]byte

func (m memory) List(maxNames int) (names, leftovers []string, err error) {
	if len(m) > maxNames {
		return nil, nil, &durable.Error{Code: durable.CodeUnsafe, Op: "list", Name: "bundle"}
	}
	return sorted(m), nil, nil
}

func (m memory) Read(name string, maxBytes int64) ([]byte, error) {
	data, ok := m[name]
	if !ok {
		return nil, &durable.Error{Code: durable.CodeUnread, Op: "read", Name: name, Err: fs.ErrNotExist}
	}
	if int64(len(data)) > maxBytes {
		return nil, &durable.Error{Code: durable.CodeUnsafe, Op: "read", Name: name}
	}
	return data, nil
}

// Restore writes a journal that [Journal.Export] or [ReadFiles] returned to an empty or absent
// folder, perhaps elsewhere. Everything is verified before anything is written. The copy of an
// exported journal also gets the record of its import, and is free. A copy that is older than what
// the folder's place is known for is refused. The founding entry is written last: an interrupted
// restoration leaves a folder without provenance, which nothing accepts as a journal.
func (f Files) Restore(dir string, l *Layout, opt Options) (err error) {
	r, faults, err := f.Inspect(l)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return faults[0]
	}
	d, err := durable.Make(dir, opt.durable())
	if err != nil {
		return l.folder(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Lock(false); err != nil {
		return l.folder(err)
	}
	if err := l.empty(d); err != nil {
		return err
	}
	files, err := f.headed(d, l, r)
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(sorted(files), func(name string) bool { return name == l.founding() })
	for _, name := range append(names, l.founding()) {
		if err := d.Publish(name, files[name]); err != nil {
			return l.folder(err)
		}
	}
	return nil
}

// headed writes the head of a journal that is about to be restored to d, and gives the files with
// the record of the import, if there is one.
func (f Files) headed(d *durable.Dir, l *Layout, r *Record) (Files, error) {
	if err := f.outdated(d, l, r); err != nil {
		return nil, err
	}
	if r.Exported() {
		can, err := l.canHead(d, r, r.planDigest)
		if err == nil {
			f, err = f.imported(l, r, can)
		}
		if err != nil {
			return nil, err
		}
	}
	if !r.headed() {
		return f, nil
	}
	return f, l.advance(d, r)
}

// outdated refuses files that are behind the head which an earlier journal of the same plan left
// beside the folder: to restore them would put an older copy back. What an interrupted restoration
// of the same files left is theirs.
func (f Files) outdated(d *durable.Dir, l *Layout, r *Record) error {
	after := r.clone()
	if after.Exported() {
		if _, err := f.imported(l, after, true); err != nil {
			return err
		}
	}
	if fault := l.compare(d, after); fault != nil {
		return fault
	}
	return nil
}

// empty refuses a folder with files in it.
func (l *Layout) empty(d *durable.Dir) error {
	names, _, err := d.List(l.MaxFiles() + maxLeftovers)
	if err == nil && len(names) == 0 {
		return nil
	}
	if err != nil && durable.CodeOf(err) != durable.CodeUnsafe {
		return l.foreign("", err)
	}
	return l.fault(CodeExists, "", "", "the folder of a new journal must be empty")
}
