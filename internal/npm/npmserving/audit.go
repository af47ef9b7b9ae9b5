package npmserving

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// audit is one of the two forms in which clients ask what is known against what they installed. The
// public registry is asked in the newer one for both.
func audit(parse func([]byte) (serving.Question, error)) serving.Audit {
	return serving.Audit{Parse: parse, Path: "/-/npm/v1/security/advisories/bulk", Body: func(versions map[string][]string) []byte {
		body, _ := json.Marshal(versions) // strings cannot fail
		return body
	}}
}

// advice is an advisory as the bulk form has it.
type advice struct {
	ID         int64    `json:"id"`
	URL        string   `json:"url"`
	Title      string   `json:"title"`
	Severity   string   `json:"severity"`
	Vulnerable string   `json:"vulnerable_versions"`
	CWE        []string `json:"cwe"`
	CVSS       cvss     `json:"cvss"`

	fixed string
}

type cvss struct {
	Score  float64 `json:"score"`
	Vector *string `json:"vectorString"`
}

// bulk reads the newer form: an object of packages with lists of versions.
func bulk(body []byte) (serving.Question, error) {
	var versions map[string][]string
	if err := json.Unmarshal(body, &versions); err != nil {
		return serving.Question{}, errors.New("it is no object of packages with lists of versions")
	}
	maps.DeleteFunc(versions, func(name string, _ []string) bool { return !isName(name) })
	return serving.Question{
		Versions: versions,
		Own: func(found map[string][]registry.Finding) []byte {
			out, _ := json.Marshal(advised(found)) // nor can these
			return out
		},
		Relayed: func(answer []byte) ([]byte, error) {
			var all map[string][]json.RawMessage
			return answer, json.Unmarshal(answer, &all)
		},
	}, nil
}

// isName reports whether a word may be the name of a package; clients ask about what is on a disk
// as well.
func isName(word string) bool {
	_, err := npm.ParseName(word)
	return err == nil
}

// advised writes findings as the bulk form has them.
func advised(found map[string][]registry.Finding) map[string][]advice {
	out := map[string][]advice{}
	for name, all := range found {
		for i := range all {
			f := &all[i]
			a := advice{
				ID: number(f.ID), URL: "https://osv.dev/vulnerability/" + f.ID, Title: strings.Join(append([]string{f.ID}, f.Aliases...), ", "),
				Severity: severity(f), Vulnerable: ranges(f.Affected), CWE: []string{}, CVSS: cvss{Score: f.Score}, fixed: f.FixedIn,
			}
			if f.Malware {
				a.Title = "malware: " + a.Title
			}
			out[name] = append(out[name], a)
		}
	}
	return out
}

// number is an identifier as clients want it, the same each time.
func number(id string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash does not fail
	return int64(h.Sum32() &^ (1 << 31))
}

// severity is npm's word for a score. What has none is high, as npm itself takes it.
func severity(f *registry.Finding) string {
	switch {
	case f.Malware || f.Score >= 9:
		return "critical"
	case !f.Scored || f.Score >= 7:
		return "high"
	case f.Score >= 4:
		return "moderate"
	}
	return "low"
}

// ranges writes intervals in npm's syntax of ranges.
func ranges(all []registry.Interval) string {
	var out []string
	for _, i := range all {
		var parts []string
		switch {
		case i.Low != "" && i.Low == i.High:
			parts = append(parts, i.Low)
		default:
			if i.Low != "" {
				parts = append(parts, pick(i.WithLow, ">=", ">")+i.Low)
			}
			if i.High != "" {
				parts = append(parts, pick(i.WithHigh, "<=", "<")+i.High)
			}
		}
		out = append(out, cmp.Or(strings.Join(parts, " "), "*"))
	}
	return strings.Join(slices.Compact(out), " || ")
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// within reports whether a version is in a range of comparators, as advisories have them. What
// cannot be read holds every version.
func within(version, ranges string) bool {
	v, err := npm.Definition().ParseVersion(version)
	if err != nil {
		return true
	}
	for alternative := range strings.SplitSeq(ranges, "||") {
		if holds(v, strings.Fields(strings.NewReplacer("> ", ">", "< ", "<", "= ", "=", ",", " ").Replace(alternative))) {
			return true
		}
	}
	return false
}

func holds(v registry.Comparable, comparators []string) bool {
	for _, c := range comparators {
		text := strings.TrimLeft(c, "<>=")
		other, err := npm.Definition().ParseVersion(text)
		if err != nil {
			continue
		}
		order := v.Compare(other)
		switch c[:len(c)-len(text)] {
		case ">=":
			if order < 0 {
				return false
			}
		case ">":
			if order <= 0 {
				return false
			}
		case "<=":
			if order > 0 {
				return false
			}
		case "<":
			if order >= 0 {
				return false
			}
		default:
			if order != 0 {
				return false
			}
		}
	}
	return true
}

// node is a package of the older form, in which clients send the whole tree.
type node struct {
	Version      string          `json:"version"`
	Dependencies map[string]node `json:"dependencies"`
}

// maxDepth bounds a tree.
const maxDepth = 256

// place is where a version of a package is in the tree.
type place struct{ version, path string }

// tree reads the older form.
func tree(body []byte) (serving.Question, error) {
	var root node
	if err := json.Unmarshal(body, &root); err != nil {
		return serving.Question{}, fmt.Errorf("it is no tree of dependencies: %v", err)
	}
	places, count := map[string][]place{}, 0
	if err := root.walk("", 0, func(name string, p place) {
		places[name] = append(places[name], p)
		count++
	}); err != nil {
		return serving.Question{}, err
	}
	versions := map[string][]string{}
	for name, all := range places {
		for _, p := range all {
			if !slices.Contains(versions[name], p.version) {
				versions[name] = append(versions[name], p.version)
			}
		}
	}
	report := func(all map[string][]advice) []byte { return reported(all, places, count) }
	return serving.Question{
		Versions: versions,
		Own:      func(found map[string][]registry.Finding) []byte { return report(advised(found)) },
		Relayed: func(answer []byte) ([]byte, error) {
			var all map[string][]advice
			if err := json.Unmarshal(answer, &all); err != nil {
				return nil, err
			}
			return report(all), nil
		},
	}, nil
}

func (n node) walk(path string, depth int, found func(name string, p place)) error {
	if depth > maxDepth {
		return fmt.Errorf("the tree is deeper than %d", maxDepth)
	}
	for name, child := range n.Dependencies {
		at := strings.TrimPrefix(path+">"+name, ">")
		// else it is from elsewhere
		if isName(name) && child.Version != "" && !strings.Contains(child.Version, ":") {
			found(name, place{child.Version, at})
		}
		if err := child.walk(at, depth+1, found); err != nil {
			return err
		}
	}
	return nil
}

// finding is one version in the tree, resolution one path to it.
type (
	finding struct {
		Version string   `json:"version"`
		Paths   []string `json:"paths"`
	}
	resolution struct {
		ID       int64  `json:"id"`
		Path     string `json:"path"`
		Dev      bool   `json:"dev"`
		Optional bool   `json:"optional"`
		Bundled  bool   `json:"bundled"`
	}
	action struct {
		Action   string       `json:"action"`
		Module   string       `json:"module"`
		Resolves []resolution `json:"resolves"`
	}
	detail struct {
		advice
		Module   string    `json:"module_name"`
		Patched  string    `json:"patched_versions"`
		Findings []finding `json:"findings"`
		CVEs     []string  `json:"cves"`
		Overview string    `json:"overview"`
		Advice   string    `json:"recommendation"`
	}
)

// reported writes the answer of the older form.
func reported(all map[string][]advice, places map[string][]place, count int) []byte {
	details, actions := map[string]detail{}, []action{}
	severities := map[string]int{"info": 0, "low": 0, "moderate": 0, "high": 0, "critical": 0}
	for name, advisories := range all {
		for _, a := range advisories {
			d := detail{advice: a, Module: name, Patched: "<0.0.0", CVEs: []string{}}
			if a.fixed != "" {
				d.Patched = ">=" + a.fixed
			}
			do := action{Action: "review", Module: name}
			for _, p := range places[name] {
				if within(p.version, a.Vulnerable) {
					d.Findings = append(d.Findings, finding{p.version, []string{p.path}})
					do.Resolves = append(do.Resolves, resolution{ID: a.ID, Path: p.path})
				}
			}
			if len(d.Findings) > 0 {
				details[fmt.Sprint(a.ID)+pick(details[fmt.Sprint(a.ID)].Module == "", "", "/"+name)] = d
				actions = append(actions, do)
				severities[a.Severity]++
			}
		}
	}
	body, _ := json.Marshal(map[string]any{ // maps of strings and numbers cannot fail
		"actions": actions, "advisories": details, "muted": []string{},
		"metadata": map[string]any{
			"vulnerabilities": severities, "dependencies": count, "devDependencies": 0, "optionalDependencies": 0, "totalDependencies": count,
		},
	})
	return body
}
