package advisory

import (
	"maps"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Findings returns what affects any of the versions of a package, each with all that it affects. An
// error means that what is stored about the package cannot be read.
func (d *Data) Findings(p registry.Package, versions []string) ([]registry.Finding, error) {
	if !d.Loaded(p.Ecosystem) {
		return nil, nil
	}
	return d.indexes[p.Ecosystem].findings(p.Name, versions)
}

func (x *index) findings(name string, versions []string) ([]registry.Finding, error) {
	c, err := x.compiled(name)
	if c == nil || err != nil {
		return nil, err
	}
	var out []registry.Finding
	for _, version := range versions {
		for _, a := range c.lookup(version) {
			seen := slices.ContainsFunc(out, func(f registry.Finding) bool { return f.ID == a.ID })
			if a.Affects && !seen {
				out = append(out, registry.Finding{Advisory: a, Affected: c.affected(a.ID)})
			}
		}
	}
	return out, nil
}

// affected is all that a finding affects.
func (c *compiled) affected(id string) (out []registry.Interval) {
	finding := int32(slices.IndexFunc(c.findings, func(a registry.Advisory) bool { return a.ID == id }))
	for _, s := range c.spans {
		if s.finding == finding {
			out = append(out, c.interval(s))
		}
	}
	for _, version := range slices.Sorted(maps.Keys(c.literal)) {
		if slices.Contains(c.literal[version], finding) {
			out = append(out, registry.Interval{Low: version, High: version, WithLow: true, WithHigh: true})
		}
	}
	return out
}

// interval says a span in versions. An even place lies between two bounds.
func (c *compiled) interval(s span) (i registry.Interval) {
	switch {
	case s.lo == first:
	case s.lo%2 == 1:
		i.Low, i.WithLow = c.texts[s.lo/2], true
	default:
		i.Low = c.texts[s.lo/2-1]
	}
	switch {
	case s.hi == last:
	case s.hi%2 == 1:
		i.High, i.WithHigh = c.texts[s.hi/2], true
	case int(s.hi/2) < len(c.texts):
		i.High = c.texts[s.hi/2]
	}
	return i
}
