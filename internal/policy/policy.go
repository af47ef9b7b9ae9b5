// Package policy turns the facts of one version into a verdict that explains itself. Public versions are denied unless a rule
// admits them. It knows no protocol and no network; time is an argument.
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

// Verdict is the answer for one version.
type Verdict struct {
	Admit bool
	// Rule is the name of the rule that decided, or that came nearest when no rule admitted.
	Rule string
	// Reason is one sentence for people.
	Reason string
	// AdmittedAt is the time from which the version will be admitted, when time alone decides; else zero.
	AdmittedAt time.Time
}

type decision uint8

const (
	abstain decision = iota
	admit
	deny
)

// finding is what one rule says of one version. An abstention that spoke explains the default denial.
type finding struct {
	decision decision
	spoke    bool
	at       time.Time // when an abstention turns into an admission; zero if time does not decide
}

type rule interface {
	find(now time.Time, s Subject) finding
	explain(s Subject) string
}

type namedRule struct {
	name       string
	precedence int
	ecosystems []string
	rule       rule
}

// Set is an immutable, ordered set of rules. It is safe for concurrent use.
type Set struct{ rules []namedRule }

// Spec describes one rule of a Set. Zero fields that the rule's type does not use must stay zero.
type Spec struct {
	// Name is unique within a Set.
	Name string
	// Type is AllowIfOlderThan, AllowByIdentity or DenyByIdentity.
	Type string
	// Precedence orders rules, the highest first; 0 means the type's default.
	Precedence int
	// Ecosystems limits the rule; empty means all.
	Ecosystems []string
	// Age is for AllowIfOlderThan.
	Age time.Duration
	// Packages are the patterns of AllowByIdentity and DenyByIdentity: "name", "@scope/*", "name@1.2.3", each optionally with an
	// ecosystem in front ("npm:name").
	Packages []string
}

// The rule types and their default precedence.
const (
	AllowIfOlderThan = "AllowIfOlderThan"
	AllowByIdentity  = "AllowByIdentity"
	DenyByIdentity   = "DenyByIdentity"
)

// DefaultPrecedence is the precedence of a type whose Spec gives none.
func DefaultPrecedence(typ string) (int, bool) {
	p, ok := map[string]int{AllowIfOlderThan: 100, AllowByIdentity: 250, DenyByIdentity: 400}[typ]
	return p, ok
}

// New builds a set in its one total order: precedence, the highest first, then name.
func New(specs []Spec) (*Set, error) {
	set := &Set{}
	seen := map[string]bool{}
	for _, s := range specs {
		if s.Name == "" || seen[s.Name] {
			return nil, fmt.Errorf("rule %q: every rule needs a name of its own", s.Name)
		}
		seen[s.Name] = true
		r, err := build(s)
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

func build(s Spec) (rule, error) {
	switch s.Type {
	case AllowIfOlderThan:
		if s.Age < 0 {
			return nil, fmt.Errorf("age %v is negative", s.Age)
		}
		return olderThan{s.Age}, nil
	case AllowByIdentity, DenyByIdentity:
		if len(s.Packages) == 0 {
			return nil, fmt.Errorf("%s needs packages", s.Type)
		}
		id := identity{decision: admit}
		if s.Type == DenyByIdentity {
			id.decision = deny
		}
		for _, text := range s.Packages {
			p, err := ParsePattern(text)
			if err != nil {
				return nil, err
			}
			id.patterns = append(id.patterns, p)
		}
		return id, nil
	}
	return nil, fmt.Errorf("unknown type %q: use %s, %s or %s", s.Type, AllowIfOlderThan, AllowByIdentity, DenyByIdentity)
}

// Evaluate gives the verdict at one instant. The first rule that decides wins; when none does, the version is denied, with the
// reason of the rule that came nearest.
func (s *Set) Evaluate(now time.Time, subject Subject) Verdict {
	r, f := s.find(now, subject)
	if r == nil {
		return Verdict{Rule: "default", Reason: "no rule admits this version"}
	}
	return Verdict{Admit: f.decision == admit, Rule: r.name, Reason: r.rule.explain(subject), AdmittedAt: f.at}
}

// Admits is Evaluate without the words, for whole listings: whether the version is admitted, and else by which rule it is denied
// and the time from which it will be admitted (zero when time does not decide).
func (s *Set) Admits(now time.Time, subject Subject) (ok bool, rule string, at time.Time) {
	r, f := s.find(now, subject)
	if r == nil {
		return false, "default", time.Time{}
	}
	return f.decision == admit, r.name, f.at
}

func (s *Set) find(now time.Time, subject Subject) (*namedRule, finding) {
	var nearest *namedRule
	var kept finding
	for i := range s.rules {
		r := &s.rules[i]
		if len(r.ecosystems) > 0 && !slices.Contains(r.ecosystems, subject.Package.Ecosystem) {
			continue
		}
		f := r.rule.find(now, subject)
		if f.decision != abstain {
			return r, f
		}
		if f.spoke && (nearest == nil || sooner(f.at, kept.at)) {
			nearest, kept = r, f
		}
	}
	return nearest, kept
}

// sooner reports whether an abstention that ends at a explains the denial better than one that ends at b; zero is never.
func sooner(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }
