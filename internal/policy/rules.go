package policy

import (
	"fmt"
	"strings"
	"time"
)

// olderThan admits versions whose publish time lies at least age in the past. A version of unknown age is never admitted by it.
type olderThan struct{ age time.Duration }

func (r olderThan) find(now time.Time, s Subject) finding {
	if s.Version.Published.IsZero() {
		return finding{spoke: true}
	}
	if at := s.Version.Published.Add(r.age); now.Before(at) {
		return finding{spoke: true, at: at}
	}
	return finding{decision: admit, spoke: true}
}

func (r olderThan) explain(s Subject) string {
	published := s.Version.Published
	if published.IsZero() {
		return "the upstream does not say when this version was published"
	}
	return fmt.Sprintf("published %s; versions are admitted %s after that, here from %s",
		stamp(published), spell(r.age), stamp(published.Add(r.age)))
}

// stamp spells an instant in whole seconds, rounded up, so that the text never promises an admission too early.
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

type identity struct {
	decision decision
	patterns []Pattern
}

func (r identity) find(_ time.Time, s Subject) finding {
	for _, p := range r.patterns {
		if p.Match(s) {
			return finding{decision: r.decision, spoke: true}
		}
	}
	return finding{}
}

func (r identity) explain(s Subject) string {
	for _, p := range r.patterns {
		if p.Match(s) {
			return fmt.Sprintf("named by the pattern %q", p.String())
		}
	}
	return ""
}

// Pattern matches packages by identity: "name", "@scope/*", "name@1.2.3", optionally "npm:" in front.
type Pattern struct{ ecosystem, scope, name, version string }

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	rest := text
	if eco, after, ok := strings.Cut(rest, ":"); ok {
		if eco != "npm" && eco != "pypi" {
			return p, fmt.Errorf("package pattern %q: unknown ecosystem %q, use npm or pypi", text, eco)
		}
		p.ecosystem, rest = eco, after
	}
	if i := strings.LastIndexByte(rest, '@'); i > 0 {
		rest, p.version = rest[:i], rest[i+1:]
		if p.version == "" {
			return p, fmt.Errorf("package pattern %q: nothing stands after the @", text)
		}
	}
	if scope, ok := strings.CutSuffix(rest, "/*"); ok {
		p.scope, rest = scope, ""
	}
	p.name = rest
	bad := strings.ContainsAny(p.scope+p.name+p.version, "*? \t") || p.name == "" && len(p.scope) < 2 ||
		p.scope != "" && (p.scope[0] != '@' || p.version != "")
	if bad {
		return p, fmt.Errorf("package pattern %q: write name, @scope/name, @scope/* or name@version", text)
	}
	return p, nil
}

// String is the pattern as it was written.
func (p Pattern) String() string {
	s := p.name
	if p.scope != "" {
		s = p.scope + "/*"
	}
	if p.version != "" {
		s += "@" + p.version
	}
	if p.ecosystem != "" {
		s = p.ecosystem + ":" + s
	}
	return s
}

// Match reports whether the pattern names the subject.
func (p Pattern) Match(s Subject) bool {
	return p.MatchPackage(s.Package.Ecosystem, s.Package.Name) && (p.version == "" || p.version == s.Version.Version)
}

// MatchPackage reports whether the pattern names some version of the package.
func (p Pattern) MatchPackage(ecosystem, name string) bool {
	if p.ecosystem != "" && p.ecosystem != ecosystem {
		return false
	}
	if p.scope != "" {
		return strings.HasPrefix(name, p.scope+"/")
	}
	return p.name == name
}

// HasVersion reports whether the pattern is limited to one version.
func (p Pattern) HasVersion() bool { return p.version != "" }
