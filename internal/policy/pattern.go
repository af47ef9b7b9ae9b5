package policy

import (
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Pattern matches packages by identity: "name", "@scope/*", "name@1.2.3", optionally with an
// ecosystem in front. Names are compared as the subject's ecosystem compares them.
type Pattern struct {
	ecosystem, scope, name, version string
	spellings                       []spelling
}

// spelling is a name as one ecosystem compares names.
type spelling struct {
	ecosystem string
	name      string
	canonical func(string) string
}

// ParsePattern reads a pattern over the ecosystems that are known.
func ParsePattern(text string, known registry.Ecosystems) (Pattern, error) {
	var p Pattern
	rest := text
	if eco, after, ok := strings.Cut(rest, ":"); ok {
		if err := known.Check(eco); err != nil {
			return p, fmt.Errorf("package pattern %q: %w", text, err)
		}
		p.ecosystem, rest = eco, after
	}
	if i := strings.LastIndexByte(rest, '@'); i > 0 {
		rest, p.version = rest[:i], rest[i+1:]
		if p.version == "" {
			return p, fmt.Errorf("package pattern %q: no version after the @", text)
		}
	}
	if scope, ok := strings.CutSuffix(rest, "/*"); ok {
		p.scope, rest = scope, ""
	}
	p.name = rest
	for _, e := range known {
		p.spellings = append(p.spellings, spelling{e.Name, e.Canonical(rest), e.Canonical})
	}
	bad := strings.ContainsAny(p.scope+p.name+p.version, "*? \t") || p.name == "" && len(p.scope) < 2 ||
		p.scope != "" && (p.scope[0] != '@' || p.version != "" || strings.Contains(p.scope, "/"))
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
		return len(name) > len(p.scope) && name[len(p.scope)] == '/' && strings.HasPrefix(name, p.scope)
	}
	for i := range p.spellings {
		if s := &p.spellings[i]; s.ecosystem == ecosystem {
			return s.name == s.canonical(name)
		}
	}
	return p.name == name
}

// HasVersion reports whether the pattern is limited to one version.
func (p Pattern) HasVersion() bool { return p.version != "" }

func parsePatterns(texts []string, known registry.Ecosystems) ([]Pattern, error) {
	patterns := make([]Pattern, 0, len(texts))
	for _, text := range texts {
		p, err := ParsePattern(text, known)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// matching is the first pattern that names the subject, or nil.
func matching(patterns []Pattern, s Subject) *Pattern {
	for i := range patterns {
		if patterns[i].Match(s) {
			return &patterns[i]
		}
	}
	return nil
}
