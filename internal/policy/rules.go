package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// olderThan admits versions whose publish time lies at least age in the past.
// undated admits versions of unknown age, for upstreams that date nothing.
type undated struct{}

func (undated) find(q question) finding {
	if q.Version.Published.IsZero() {
		return finding{decision: admit, spoke: true}
	}
	return finding{}
}

func (undated) explain(question, finding) string {
	return "the upstream gives no publish time for this version, which this rule allows"
}

type olderThan struct{ age time.Duration }

func buildOlderThan(s Spec, _ registry.Ecosystems) (rule, error) {
	if s.Age < 0 {
		return nil, fmt.Errorf("age %v is negative", s.Age)
	}
	return olderThan{s.Age}, nil
}

func (r olderThan) find(q question) finding {
	if q.Version.Published.IsZero() {
		return finding{spoke: true}
	}
	if at := q.Version.Published.Add(r.age); q.now.Before(at) {
		return finding{spoke: true, at: at}
	}
	return finding{decision: admit, spoke: true}
}

func (r olderThan) explain(q question, _ finding) string {
	published := q.Version.Published
	if published.IsZero() {
		return "the upstream gives no publish time for this version"
	}
	return fmt.Sprintf("published %s; versions are admitted %s after that, here from %s",
		stamp(published), spell(r.age), stamp(published.Add(r.age)))
}

// stamp spells an instant in whole seconds, rounded up, so that the text never promises an
// admission too early.
func stamp(t time.Time) string {
	return t.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// spell prints whole days as days and anything else as Go does.
func spell(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d > 0 && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// notAfter denies versions published after date.
type notAfter struct{ date time.Time }

func buildNotAfter(s Spec, _ registry.Ecosystems) (rule, error) {
	if s.Date.IsZero() {
		return nil, errors.New("NotAfter needs a date")
	}
	return notAfter{s.Date}, nil
}

func (r notAfter) find(q question) finding {
	if p := q.Version.Published; p.IsZero() || p.After(r.date) {
		return finding{decision: deny, spoke: true}
	}
	return finding{}
}

func (r notAfter) explain(q question, _ finding) string {
	date := r.date.UTC().Format(time.RFC3339)
	if q.Version.Published.IsZero() {
		return "the upstream gives no publish time for this version, and nothing newer than " + date + " is admitted"
	}
	return fmt.Sprintf("published %s; nothing newer than %s is admitted", stamp(q.Version.Published), date)
}

// identity decides about what its patterns name.
type identity struct {
	decision decision
	patterns []Pattern
}

func buildIdentity(s Spec, known registry.Ecosystems) (rule, error) {
	if len(s.Packages) == 0 {
		return nil, fmt.Errorf("%s needs packages", s.Type)
	}
	patterns, err := parsePatterns(s.Packages, known)
	if s.Type == DenyByIdentity {
		return identity{deny, patterns}, err
	}
	return identity{admit, patterns}, err
}

func buildScope(s Spec, known registry.Ecosystems) (rule, error) {
	if len(s.Scopes) == 0 {
		return nil, fmt.Errorf("%s needs scopes, as in @acme", s.Type)
	}
	r := identity{decision: admit}
	for _, scope := range s.Scopes {
		for _, e := range known {
			if !e.HasScopes {
				continue
			}
			p, err := ParsePattern(e.Name+":"+scope+"/*", known)
			if err != nil || p.scope != scope {
				return nil, fmt.Errorf("scope %q: write it like @acme", scope)
			}
			r.patterns = append(r.patterns, p)
		}
	}
	if len(r.patterns) == 0 {
		return nil, errors.New("no ecosystem here has scopes")
	}
	return r, nil
}

func (r identity) find(q question) finding {
	if matching(r.patterns, q.Subject) == nil {
		return finding{}
	}
	return finding{decision: r.decision, spoke: true}
}

func (r identity) explain(q question, _ finding) string {
	return fmt.Sprintf("matches the pattern %q", matching(r.patterns, q.Subject).String())
}

// installCode denies versions whose installation runs code of the package.
type installCode struct{ except []Pattern }

func buildInstallCode(s Spec, known registry.Ecosystems) (rule, error) {
	except, err := parsePatterns(s.Except, known)
	return installCode{except}, err
}

func (r installCode) find(q question) finding {
	if !q.Version.InstallScripts || matching(r.except, q.Subject) != nil {
		return finding{}
	}
	return finding{decision: deny, spoke: true}
}

func (r installCode) explain(question, finding) string {
	return "installing this version runs code of the package; to admit it anyway, add it to this rule's except list"
}

// list spells at most a few items.
func list(items []string) string {
	const most = 5
	if len(items) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
	}
	return strings.Join(items, ", ")
}
