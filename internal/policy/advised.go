package policy

import (
	"cmp"
	"fmt"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// advisoryRule marks the rules that read advisory data.
type advisoryRule interface{ readsAdvisories() }

// advised denies versions that an advisory affects.
type advised struct {
	min             float64
	denyUnavailable bool
}

func buildAdvised(s Spec, _ registry.Ecosystems) (rule, error) {
	if !(s.MinCVSS >= 0 && s.MinCVSS <= 10) { // NaN as well
		return nil, fmt.Errorf("minCVSS %v: CVSS scores range from 0 to 10", s.MinCVSS)
	}
	denyUnavailable, err := denies(FieldOnUnavailable, s.OnUnavailable)
	return advised{s.MinCVSS, denyUnavailable}, err
}

func (advised) readsAdvisories() {}

// find never admits, and denies when it cannot know: skipping is for data that is not there, not
// for data that is broken.
func (r advised) find(q question) finding {
	if !loaded(q) {
		if r.denyUnavailable {
			return finding{decision: deny, spoke: true, temporary: true}
		}
		return finding{}
	}
	all, err := q.advisories.Lookup(q.Package, q.Version.Version)
	if err != nil {
		return finding{decision: deny, spoke: true, temporary: true}
	}
	counting := 0
	for i := range all {
		if r.counts(&all[i]) {
			counting++
		}
	}
	if counting == 0 {
		return finding{}
	}
	return finding{decision: deny, spoke: true, advisories: all}
}

// counts reports whether an advisory is one to deny for. Malware is above every threshold, with a
// score or without.
func (r advised) counts(a *registry.Advisory) bool {
	return a.Affects && (a.Malware || r.min == 0 || a.Scored && a.Score >= r.min)
}

func (r advised) explain(q question, f finding) string {
	switch {
	case f.temporary && !loaded(q):
		return "the advisory data is not loaded, and this rule admits nothing without it"
	case f.temporary:
		return "the advisory data for this package is unreadable, and this rule admits nothing without it"
	}
	var worst *registry.Advisory
	others := -1
	for i := range f.advisories {
		a := &f.advisories[i]
		if !r.counts(a) {
			continue
		}
		others++
		if worst == nil || cmp.Compare(rank(a), rank(worst)) > 0 {
			worst = a
		}
	}
	text := "affected by " + worst.ID
	if worst.Malware {
		text = worst.ID + " reports it as malware"
	}
	if worst.Scored {
		text += fmt.Sprintf(" (CVSS %.1f)", worst.Score)
	}
	if others > 0 {
		text += fmt.Sprintf(", the worst of %d", others+1)
	}
	if worst.FixedIn != "" {
		text += ", fixed in " + worst.FixedIn
	}
	if r.min > 0 && !worst.Malware {
		text += fmt.Sprintf("; advisories with CVSS %.1f or higher are refused", r.min)
	}
	return text
}

// rank orders advisories by how bad they are.
func rank(a *registry.Advisory) float64 {
	switch {
	case a.Malware:
		return 11
	case a.Scored:
		return a.Score
	}
	return -1
}

func loaded(q question) bool { return q.advisories != nil && q.advisories.Loaded(q.Package.Ecosystem) }

// remediates admits exact fixes that nothing affects.
type remediates struct{}

func (remediates) readsAdvisories() {}

// find admits only on what the data says: without data, or with data that cannot be read, it is
// silent.
func (remediates) find(q question) finding {
	if !loaded(q) {
		return finding{}
	}
	all, err := q.advisories.Lookup(q.Package, q.Version.Version)
	if err != nil {
		return finding{}
	}
	fixes := false
	for i := range all {
		if all[i].Affects {
			return finding{}
		}
		fixes = fixes || all[i].Fixes
	}
	if !fixes {
		return finding{}
	}
	return finding{decision: admit, spoke: true, advisories: all}
}

func (remediates) explain(_ question, f finding) string {
	var ids []string
	for _, a := range f.advisories {
		if a.Fixes {
			ids = append(ids, a.ID)
		}
	}
	return "the fix of " + list(ids) + ", and no advisory affects it"
}
