package pypiserving

import (
	"errors"
)

// lockedFile is a file as the lock files of Python's tools name it.
type lockedFile struct {
	Name string `toml:"name"` // pylock
	File string `toml:"file"` // poetry, pdm
	URL  string `toml:"url"`
}

// pylock reads the standard form (PEP 751): each [[packages]] has files by name or address, or
// comes from elsewhere.
func (r *reader) pylock(data []byte) error {
	var doc struct {
		LockVersion string `toml:"lock-version"`
		Packages    []struct {
			Name      string       `toml:"name"`
			Wheels    []lockedFile `toml:"wheels"`
			Sdist     *lockedFile  `toml:"sdist"`
			Archive   *lockedFile  `toml:"archive"`
			VCS       *lockedFile  `toml:"vcs"`
			Directory *struct{}    `toml:"directory"`
		} `toml:"packages"`
	}
	if err := decode(data, "a tool", &doc); err != nil {
		return err
	}
	if doc.LockVersion == "" {
		return errors.New("it has no lock-version")
	}
	for _, p := range doc.Packages {
		files := p.Wheels
		if p.Sdist != nil {
			files = append(files, *p.Sdist)
		}
		for _, other := range []*lockedFile{p.Archive, p.VCS} {
			if other != nil {
				r.At(p.Name, other.URL)
			}
		}
		if len(files) == 0 {
			if p.Directory == nil {
				r.Skipped++
			}
			continue
		}
		r.files(p.Name, files)
	}
	return nil
}

// files adds the files of a project.
func (r *reader) files(name string, files []lockedFile) {
	for _, f := range files {
		switch {
		case f.URL != "" && f.Name == "":
			r.address(name, f.URL)
		case f.Name != "":
			r.At(name, f.URL)
			r.file(name, f.Name)
		case f.File != "":
			r.file(name, f.File)
		default: // it lies on a disk
			r.Skipped++
		}
	}
}

// poetry reads the files of each [[package]]; a source of another type than an index has none
// there.
func (r *reader) poetry(data []byte) error {
	var doc struct {
		Packages []struct {
			Name   string       `toml:"name"`
			Files  []lockedFile `toml:"files"`
			Source struct {
				Type string `toml:"type"`
				URL  string `toml:"url"`
			} `toml:"source"`
		} `toml:"package"`
	}
	if err := decode(data, "poetry", &doc); err != nil {
		return err
	}
	for _, p := range doc.Packages {
		r.At(p.Name, p.Source.URL)
		if t := p.Source.Type; t != "" && t != "legacy" || len(p.Files) == 0 {
			r.Skipped++
			continue
		}
		r.files(p.Name, p.Files)
	}
	return nil
}

// pdm reads the files of each [[package]], which have names or addresses.
func (r *reader) pdm(data []byte) error {
	var doc struct {
		Packages []struct {
			Name  string       `toml:"name"`
			Files []lockedFile `toml:"files"`
			Git   string       `toml:"git"`
			URL   string       `toml:"url"`
			Path  string       `toml:"path"`
		} `toml:"package"`
	}
	if err := decode(data, "pdm", &doc); err != nil {
		return err
	}
	for _, p := range doc.Packages {
		if p.Git != "" || p.URL != "" || p.Path != "" || len(p.Files) == 0 {
			r.At(p.Name, p.Git+p.URL)
			r.Skipped++
			continue
		}
		r.files(p.Name, p.Files)
	}
	return nil
}
