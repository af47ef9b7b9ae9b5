package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
)

// Advisories says where advisory data comes from.
type Advisories struct {
	// Source is the OSV export: a URL, a zip or a folder, in which {ecosystem} stands for the
	// ecosystem's name; "" means none.
	Source string
	// Interval is the time between two looks at it.
	Interval time.Duration
}

const (
	advisoriesSource   = "advisories.source"
	advisoriesInterval = "advisories.interval"
)

// minAdvisoryInterval keeps the source from being asked all the time.
const minAdvisoryInterval = time.Minute

type advisorySource string

// url is the source of one ecosystem as a URL; nil when it is a path, or empty.
func (s advisorySource) url(ecosystem string) (*url.URL, error) {
	if !strings.Contains(string(s), "://") {
		return nil, nil
	}
	return parseURL(strings.ReplaceAll(string(s), "{ecosystem}", ecosystem))
}

func (s advisorySource) check() error {
	if strings.ContainsAny(string(s), "\x00\r\n") {
		return problemf("is neither a URL nor a path")
	}
	_, err := s.url("ecosystem")
	return err
}

// advisoryUpstreams are the servers that the source is read from: one, unless its host depends on
// the ecosystem.
func (c *Config) advisoryUpstreams() (all []upstream) {
	for _, e := range c.known {
		u, err := advisorySource(c.Advisories.Source).url(e.OSVName)
		if err != nil || u == nil || slices.ContainsFunc(all, func(other upstream) bool { return sameAuthority(other.url, u) }) {
			continue // a wrong one has been reported
		}
		all = append(all, upstream{advisoriesSource, u, false})
	}
	return all
}

// checkAdvisories looks at the source and the rules together: a rule that can never know anything
// is not meant.
func (l *loader) checkAdvisories() {
	a := l.cfg.Advisories
	if v, _ := l.strongest(advisoriesInterval); a.Interval < minAdvisoryInterval && !l.failed[advisoriesInterval] {
		l.problems.add(advisoriesInterval, v, "%v is too short: the minimum is %v", a.Interval, minAdvisoryInterval)
	}
	if l.failed[advisoriesSource] {
		return
	}
	read := false
	for _, r := range l.cfg.Rules {
		switch {
		case !policy.ReadsAdvisories(r.Type):
		case a.Source != "":
			read = true
		case r.Type == policy.DenyIfAdvisory && r.OnUnavailable != policy.Skip:
			l.problems.add(rulesPrefix+r.Name, l.anyOfRule(r.Name), "needs advisories, and advisories.source is not set: it would refuse everything; set the source")
		default:
			l.cfg.warn("rules." + r.Name + ": needs advisories, and advisories.source is not set, so it has no effect")
		}
	}
	if a.Source != "" && !read {
		l.cfg.warn("advisories.source: no rule uses advisories; add one, as in rules: {advisories: {type: " + policy.DenyIfAdvisory + ", minCVSS: 7}}")
	}
}

// anyOfRule is the value that the strongest layer which speaks of a rule has for it.
func (l *loader) anyOfRule(name string) value {
	var v value
	for _, layer := range l.layers {
		if fields := layer.rule(name); len(fields) > 0 {
			v = anyOf(fields)
		}
	}
	return v
}
