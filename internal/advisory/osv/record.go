// Package osv reads what we need of the OSV format (schema 1.x,
// https://ossf.github.io/osv-schema/): single records, and exports of many in a zip or a folder. It
// opens no connection and knows no ecosystem's versions.
package osv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of one record.
const (
	maxRecord  = 16 << 20 // bytes of JSON
	maxAliases = 64
	// MaxText is the length in bytes of an identifier, a package's name or a version.
	MaxText = 256
)

// wire is what we read of a record.
type wire struct {
	ID        string     `json:"id"`
	Modified  string     `json:"modified"`
	Withdrawn string     `json:"withdrawn"`
	Aliases   []string   `json:"aliases"`
	Severity  []severity `json:"severity"`
	Affected  []affected `json:"affected"`
	Database  database   `json:"database_specific"`
}

type severity struct {
	Type  string `json:"type"`
	Score string `json:"score"`
}

type affected struct {
	Package struct {
		Ecosystem string `json:"ecosystem"`
		Name      string `json:"name"`
	} `json:"package"`
	Ranges   []eventRange `json:"ranges"`
	Versions []string     `json:"versions"`
	Severity []severity   `json:"severity"`
}

type eventRange struct {
	Type   string      `json:"type"`
	Events []wireEvent `json:"events"`
}

type wireEvent struct {
	Introduced   string `json:"introduced"`
	Fixed        string `json:"fixed"`
	LastAffected string `json:"last_affected"`
	Limit        string `json:"limit"`
}

// database is the part that each database fills as it likes: only GitHub's severity label is read,
// and nothing in it can be wrong.
type database struct{ severity string }

// UnmarshalJSON implements json.Unmarshaler.
func (d *database) UnmarshalJSON(data []byte) error {
	var github struct {
		Severity any `json:"severity"`
	}
	if json.Unmarshal(data, &github) == nil {
		d.severity, _ = github.Severity.(string)
	}
	return nil
}

// Record is one record as far as one ecosystem is concerned.
type Record struct {
	ID string
	// Aliases are the other names of the same finding, sorted.
	Aliases []string
	// Modified is the time of its last change; zero when it cannot be read.
	Modified time.Time
	// Malware reports that it, or an alias of it, is a report of a malicious package.
	Malware bool
	// Scored reports whether it gives a severity, Score which, as a CVSS base score; 10 when it
	// cannot be read.
	Scored bool
	Score  float64
	// Packages are the affected packages by the name that the record gives, and which versions of
	// each.
	Packages map[string][]Extent
}

// Extent says which versions of one package a record affects.
type Extent struct {
	Ranges   [][]Event `json:"ranges,omitempty"`
	Versions []string  `json:"versions,omitempty"`
	// All is set where nothing that can be evaluated limits the extent.
	All bool `json:"all,omitempty"`
}

// Event is a kind and a version; "0" as the version of Introduced means before every version.
type Event [2]string

// The kinds of events, in the order in which events of one version are applied.
const (
	Introduced   = "introduced"
	LastAffected = "last_affected"
	Fixed        = "fixed"
	Limit        = "limit"
)

// Errors of Read about records that are not used, and sound all the same.
var (
	ErrElsewhere = errors.New("about other ecosystems")
	ErrWithdrawn = errors.New("withdrawn")
)

// Read reads one record for one ecosystem, given by OSV's name for it ("PyPI"). The error is
// ErrElsewhere, ErrWithdrawn, or says why the record is broken.
func Read(data []byte, ecosystem string, now time.Time) (*Record, error) {
	var osv wire
	if err := json.Unmarshal(data, &osv); err != nil {
		return nil, fmt.Errorf("not an OSV record: %v", err)
	}
	if osv.ID == "" || len(osv.ID) > MaxText {
		return nil, errors.New("not an OSV record: no usable id")
	}
	r := &Record{ID: osv.ID, Packages: map[string][]Extent{}}
	severities := osv.Severity
	for _, a := range osv.Affected {
		if !a.belongs(ecosystem) {
			continue
		}
		name := a.Package.Name
		if name == "" || len(name) > MaxText {
			return nil, errors.New("a package without a usable name")
		}
		r.Packages[name] = append(r.Packages[name], a.extent())
		severities = append(severities, a.Severity...)
	}
	switch {
	case len(r.Packages) == 0:
		return nil, ErrElsewhere
	case withdrawn(osv.Withdrawn, now):
		return nil, ErrWithdrawn
	}
	r.Aliases = aliases(osv)
	r.Malware = slices.ContainsFunc(append([]string{r.ID}, r.Aliases...), func(id string) bool { return strings.HasPrefix(id, "MAL-") })
	r.Score, r.Scored = score(severities, osv.Database.severity)
	r.Modified, _ = time.Parse(time.RFC3339, osv.Modified)
	return r, nil
}

// withdrawn reports whether a record is no longer meant. A time that cannot be read withdraws
// nothing.
func withdrawn(text string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && !at.After(now)
}

func aliases(osv wire) []string {
	var out []string
	for _, alias := range osv.Aliases {
		if alias != "" && alias != osv.ID && len(alias) <= MaxText && len(out) < maxAliases {
			out = append(out, alias)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// belongs reports whether the package is one of the ecosystem. OSV may qualify an ecosystem
// ("Debian:12"); ours never are, and a qualified one is taken for the whole.
func (a *affected) belongs(ecosystem string) bool {
	base, _, _ := strings.Cut(a.Package.Ecosystem, ":")
	return base == ecosystem
}

func (a *affected) extent() Extent {
	var e Extent
	for _, r := range a.Ranges {
		if r.Type == "GIT" { // commits are no versions
			continue
		}
		events := r.read()
		if len(events) == 0 {
			e.All = true
			continue
		}
		e.Ranges = append(e.Ranges, events)
	}
	for _, v := range a.Versions {
		if v != "" && len(v) <= MaxText {
			e.Versions = append(e.Versions, v)
		}
	}
	if len(e.Ranges) == 0 && len(e.Versions) == 0 {
		e.All = true
	}
	return e
}

func (r *eventRange) read() []Event {
	var out []Event
	begun := false
	for _, ev := range r.Events {
		for _, e := range []Event{{Introduced, ev.Introduced}, {LastAffected, ev.LastAffected}, {Fixed, ev.Fixed}, {Limit, ev.Limit}} {
			if e[1] != "" {
				out = append(out, e)
				begun = begun || e[0] == Introduced
			}
		}
	}
	if len(out) > 0 && !begun { // the schema demands an introduced event
		out = append([]Event{{Introduced, "0"}}, out...)
	}
	return out
}
