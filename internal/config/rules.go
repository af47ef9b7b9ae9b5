package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
)

const rulesPrefix = "rules."

// defaultRules is the weakest layer: a public version must be a week old.
func defaultRules() layer {
	return layer{
		"rules.min-age.type": {scalar: policy.AllowIfOlderThan, layer: FromDefault},
		"rules.min-age.age":  {scalar: "168h", layer: FromDefault},
	}
}

// commonFields are the keys that a rule may have, whatever its type.
func commonFields() []string { return []string{"type", "enabled", "precedence", "ecosystems"} }

// ruleFields are the keys that some rule may have.
func ruleFields() []string {
	fields := commonFields()
	for _, typ := range policy.Types() {
		fields = append(fields, policy.Fields(typ)...)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func fieldOfType(field, typ string) bool {
	return slices.Contains(commonFields(), field) || slices.Contains(policy.Fields(typ), field)
}

// rulePaths lists the keys of rules that any layer sets, sorted.
func (l *loader) rulePaths() []string {
	set := map[string]bool{}
	for _, layer := range l.layers {
		for path := range layer {
			if strings.HasPrefix(path, rulesPrefix) {
				set[path] = true
			}
		}
	}
	var paths []string
	for path := range set {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// readRules merges the layers rule by rule and keeps the enabled ones. A layer that gives a rule
// another type starts that rule anew: the keys of the old type would make no sense.
func (l *loader) readRules() {
	byName := map[string]map[string]value{}
	var names []string
	for _, layer := range l.layers {
		for _, name := range namesOfRules(layer) {
			fields := l.renameType(name, layer.rule(name))
			old, known := byName[name]
			if !known {
				names = append(names, name)
			}
			if typ, ok := fields["type"]; !known || ok && typ.scalar != old["type"].scalar {
				old = map[string]value{}
			}
			maps.Copy(old, fields)
			byName[name] = old
		}
	}
	slices.Sort(names)
	for _, name := range names {
		l.readRule(name, byName[name])
	}
}

// renameType replaces the former name of a rule's type, with a warning.
func (l *loader) renameType(rule string, fields map[string]value) map[string]value {
	v, ok := fields["type"]
	if typ, former := policy.Renamed(v.scalar); ok && former {
		at := Problem{Key: rulesPrefix + rule + ".type", Layer: v.layer, Line: v.line, Source: v.source}
		l.cfg.warn(l.problems.place(at) + v.scalar + " is deprecated: write " + typ + ", which means the same")
		v.scalar = typ
		fields["type"] = v
	}
	return fields
}

func namesOfRules(layer layer) []string {
	var names []string
	for path := range layer {
		if rest, ok := strings.CutPrefix(path, rulesPrefix); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rule returns the keys that one layer sets for a rule.
func (y layer) rule(name string) map[string]value {
	fields := map[string]value{}
	for path, v := range y {
		if field, ok := strings.CutPrefix(path, rulesPrefix+name+"."); ok {
			fields[field] = v
		}
	}
	return fields
}

// readRule checks one merged rule and keeps it if it is sound and enabled.
func (l *loader) readRule(name string, fields map[string]value) {
	if len(fields) == 0 { // rules.NAME without keys below it; refuseUnknown speaks of it
		return
	}
	at := rulesPrefix + name
	before := len(l.problems.List)
	spec := policy.Spec{Name: name, Type: fields["type"].scalar}
	known := l.checkType(at, spec.Type, fields)
	enabled := true
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		v := fields[field]
		l.cfg.settings = append(l.cfg.settings, v.setting(at+"."+field))
		if !slices.Contains(ruleFields(), field) {
			continue // refuseUnknown speaks of it
		}
		if known && !fieldOfType(field, spec.Type) {
			l.problems.add(at+"."+field, v, "rules of type %s have no such key", spec.Type)
		} else if err := readField(field, v, &spec, &enabled); err != nil {
			l.problems.add(at+"."+field, v, "%v", err)
		}
	}
	if len(l.problems.List) > before {
		return
	}
	if _, err := policy.New([]policy.Spec{spec}, l.opts.Ecosystems); err != nil {
		l.problems.add(at, anyOf(fields), "%v", err)
	} else if enabled {
		l.cfg.Rules = append(l.cfg.Rules, spec)
	}
}

// checkType reports a type that is missing or unknown, and an age that is missing, which policy
// takes for 0.
func (l *loader) checkType(at, typ string, fields map[string]value) (known bool) {
	_, known = policy.DefaultPrecedence(typ)
	_, hasAge := fields[policy.FieldAge]
	switch {
	case typ == "":
		l.problems.add(at, anyOf(fields), "has no type; use %s", strings.Join(policy.Types(), ", "))
	case !known:
		l.problems.add(at+".type", fields["type"], "unknown type %s%s; use %s", quote(typ), didYouMean(typ, policy.Types()), strings.Join(policy.Types(), ", "))
	case typ == policy.AllowIfOlderThan && !hasAge:
		l.problems.add(at, fields["type"], "%s needs an age, as in age: 168h", typ)
	}
	return known
}

func readField(field string, v value, spec *policy.Spec, enabled *bool) (err error) {
	switch {
	case v.null:
		return problemf("has no value")
	case v.group:
		return errGroup
	}
	switch field {
	case "enabled":
		if *enabled, err = parseBool(v.scalar); v.isList {
			return problemf("must be true or false")
		}
	case "precedence":
		if err = parseInto(&spec.Precedence, v); err == nil && spec.Precedence == 0 {
			return problemf("must be at least 1; the highest decides first")
		}
	case policy.FieldMinCVSS:
		if spec.MinCVSS, err = strconv.ParseFloat(v.scalar, 64); err != nil || v.isList {
			return problemf("%s is not a score from 0 to 10", quote(v.String()))
		}
	case policy.FieldDate:
		if spec.Date, err = parseDate(v); err != nil {
			return err
		}
	default:
		return parseInto(map[string]any{
			"type": &spec.Type, "ecosystems": &spec.Ecosystems, policy.FieldAge: &spec.Age, policy.FieldPackages: &spec.Packages,
			policy.FieldScopes: &spec.Scopes, policy.FieldOnUnavailable: &spec.OnUnavailable, policy.FieldExcept: &spec.Except,
			policy.FieldLicenses: &spec.Licenses, policy.FieldOnUnknown: &spec.OnUnknown,
		}[field], v)
	}
	return err
}

// parseDate reads an instant, or a day, which means its last second in UTC.
func parseDate(v value) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, v.scalar); err == nil && !v.isList {
		return day.Add(24*time.Hour - time.Second), nil
	}
	at, err := time.Parse(time.RFC3339, v.scalar)
	if err != nil || v.isList {
		return at, problemf("%s is not a date like 2026-12-01 or 2026-12-01T12:00:00Z", quote(v.String()))
	}
	return at, nil
}

// anyOf picks the value that stands first in the file, to say where a rule is.
func anyOf(fields map[string]value) value {
	var first value
	for _, v := range fields {
		if first.layer == "" || v.line > 0 && (first.line == 0 || v.line < first.line) {
			first = v
		}
	}
	return first
}
