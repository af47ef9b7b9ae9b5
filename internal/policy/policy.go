// Package policy turns the facts of one version into a verdict that explains itself. Public
// versions are denied unless a rule admits them. It knows no protocol and no network; time is an
// argument, and so is what advisories say.
package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Subject is what rules look at: one version of one package.
type Subject struct {
	Package registry.Package
	Version registry.Version
}

// Advisories is what rules may ask of the advisory data: one snapshot, which never changes under a
// rule. It is safe for concurrent use.
type Advisories interface {
	// Loaded reports whether there is data for an ecosystem at all.
	Loaded(ecosystem string) bool
	// Lookup returns what the data says of one version: the advisories that affect it, and those
	// whose exact fix it is. An error means that the data about this package cannot be used.
	Lookup(p registry.Package, version string) ([]registry.Advisory, error)
	// Findings returns what affects any of some versions. An error is as for Lookup.
	Findings(p registry.Package, versions []string) ([]registry.Finding, error)
}

// Verdict is the answer for one version.
type Verdict struct {
	Admit bool
	// Rule is the name of the rule that decided, or that came nearest when no rule admitted.
	Rule string
	// Reason is one sentence for people.
	Reason string
	// AdmittedAt is the time from which the version will be admitted, when time alone decides; else
	// zero.
	AdmittedAt time.Time
	// Temporary reports that the denial is due to missing data and passes once the data is loaded.
	Temporary bool
}

type decision uint8

const (
	abstain decision = iota
	admit
	deny
)

// finding is what one rule says of one version. An abstention that spoke explains the default
// denial.
type finding struct {
	decision  decision
	spoke     bool
	temporary bool
	at        time.Time // when an abstention turns into an admission; zero if time does not decide
	// What an advisory rule found, for its explanation.
	advisories []registry.Advisory
}

// question is one look at a set: everything that a rule may know.
type question struct {
	now time.Time
	Subject
	advisories Advisories // nil: there are none
}

type rule interface {
	find(q question) finding
	explain(q question, f finding) string
}

type namedRule struct {
	name       string
	precedence int
	ecosystems []string
	rule       rule
}

// Set is an immutable, ordered set of rules, together with the advisory data that they read. It is
// safe for concurrent use.
type Set struct {
	rules      []namedRule
	advisories Advisories
}

// Default is the name in the verdict that no rule took part in; no rule may have it.
const Default = "default"

// New builds a set in its one total order: precedence, the highest first, then name. Its rules may
// speak of the ecosystems that are known. It has no advisory data: rules that need some say so in
// their verdicts.
func New(specs []Spec, known registry.Ecosystems) (*Set, error) {
	set := &Set{}
	seen := map[string]bool{"": true, Default: true}
	for _, s := range specs {
		if seen[s.Name] {
			return nil, fmt.Errorf("rule %q: each rule needs a unique name other than %q", s.Name, Default)
		}
		seen[s.Name] = true
		r, err := build(s, known)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", s.Name, err)
		}
		if s.Precedence == 0 {
			s.Precedence, _ = DefaultPrecedence(s.Type)
		}
		set.rules = append(set.rules, namedRule{name: s.Name, precedence: s.Precedence, ecosystems: s.Ecosystems, rule: r})
	}
	slices.SortFunc(set.rules, func(a, b namedRule) int {
		return cmp.Or(cmp.Compare(b.precedence, a.precedence), cmp.Compare(a.name, b.name))
	})
	return set, nil
}

// WithAdvisories is the same set over other advisory data; nil takes the data away. Since a set
// never changes, new data means a new set, and whatever was kept of the old one's verdicts is known
// to be old.
func (s *Set) WithAdvisories(a Advisories) *Set { return &Set{rules: s.rules, advisories: a} }

// Advisories is the data that the set reads; nil means that there is no source of any.
func (s *Set) Advisories() Advisories { return s.advisories }

// UsesAdvisories reports whether some rule of the set reads advisory data.
func (s *Set) UsesAdvisories() bool {
	return slices.ContainsFunc(s.rules, func(r namedRule) bool {
		_, ok := r.rule.(advisoryRule)
		return ok
	})
}

// Evaluate gives the verdict at one instant. The first rule that decides wins; when none does, the
// version is denied, with the reason of the rule that came nearest.
func (s *Set) Evaluate(now time.Time, subject Subject) Verdict {
	q := question{now: now, Subject: subject, advisories: s.advisories}
	o := s.find(q)
	if o.rule == nil {
		return Verdict{Rule: Default, Reason: "no rule admits this version"}
	}
	v := Verdict{Admit: o.decision == admit, Rule: o.rule.name, Reason: o.rule.rule.explain(q, o.finding), AdmittedAt: o.at, Temporary: o.temporary}
	if o.earlier != nil {
		v.Reason += fmt.Sprintf("; rule %q comes first and admits it from %s", o.earlier.name, stamp(o.at))
	}
	return v
}

// Denies gives the denial of a rule that refuses, and false where none does: an age that is not
// reached, and that nothing admits, are no refusals. It is for versions from a registry that is
// trusted to hold what was chosen (R105). Dated tells that the publish time decided.
func (s *Set) Denies(now time.Time, subject Subject) (v Verdict, dated, denied bool) {
	q := question{now: now, Subject: subject, advisories: s.advisories}
	o := s.find(q)
	if o.decision != deny {
		return Verdict{}, false, false
	}
	_, dated = o.rule.rule.(notAfter)
	return Verdict{Rule: o.rule.name, Reason: o.rule.rule.explain(q, o.finding), Temporary: o.temporary}, dated, true
}

// Admits is Evaluate without the words, for whole listings: whether the version is admitted, and
// else by which rule it is denied and the time from which it will be admitted (zero when time does
// not decide).
func (s *Set) Admits(now time.Time, subject Subject) (ok bool, rule string, at time.Time) {
	o := s.find(question{now: now, Subject: subject, advisories: s.advisories})
	if o.rule == nil {
		return false, Default, time.Time{}
	}
	return o.decision == admit, o.rule.name, o.at
}

// outcome is the finding that stands, and whose it is: nobody's when no rule spoke.
type outcome struct {
	rule *namedRule
	finding
	// earlier is the rule that abstained before a denial and will admit at the time of the finding;
	// nil for none.
	earlier *namedRule
}

func (s *Set) find(q question) (nearest outcome) {
	for i := range s.rules {
		r := &s.rules[i]
		if len(r.ecosystems) > 0 && !slices.Contains(r.ecosystems, q.Package.Ecosystem) {
			continue
		}
		f := r.rule.find(q)
		switch {
		case f.decision == admit:
			return outcome{rule: r, finding: f}
		case f.decision == deny:
			o := outcome{rule: r, finding: f}
			if !nearest.at.IsZero() {
				o.at, o.earlier = nearest.at, nearest.rule
			}
			return o
		case f.spoke && (nearest.rule == nil || sooner(f.at, nearest.at)):
			nearest = outcome{rule: r, finding: f}
		}
	}
	return nearest
}

// sooner reports whether an abstention that ends at a explains the denial better than one that ends
// at b; zero is never.
func sooner(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }
