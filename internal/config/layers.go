package config

import (
	"fmt"
	"slices"
	"strings"
)

// Layer says where a value came from.
type Layer string

// The layers, from the weakest to the strongest.
const (
	FromDefault Layer = "default"
	FromFile    Layer = "file"
	FromEnv     Layer = "environment"
	FromFlag    Layer = "flag"
)

// FromTool stands for the own configuration of an ecosystem's tool, which is asked last of all.
func FromTool(ecosystem string) Layer { return Layer(ecosystem + " configuration") }

// Setting is one resolved value as text.
type Setting struct {
	Key, Value string
	Layer      Layer
	Line       int    // in the file, for FromFile
	Source     string // the variable's name, for FromEnv
}

// value is what one layer says about one key.
type value struct {
	scalar string
	list   []string // with isList
	isList bool
	null   bool
	group  bool // a group of settings that holds none: {}
	layer  Layer
	line   int
	source string
}

func (v value) String() string {
	if v.isList {
		return strings.Join(v.list, ", ")
	}
	return v.scalar
}

func (v value) setting(path string) Setting {
	return Setting{Key: path, Value: v.String(), Layer: v.layer, Line: v.line, Source: v.source}
}

// layer holds the values of one source by key path.
type layer map[string]value

func (l *loader) readLayers() {
	l.failed = map[string]bool{}
	l.layers = []layer{defaultRules(), l.readFile()}
	l.layers = append(l.layers, l.readEnviron()) // after the file, whose rules it may name
	l.layers = append(l.layers, l.readFlags())
}

// strongest returns what the strongest layer above the defaults says.
func (l *loader) strongest(path string) (value, bool) {
	for _, layer := range slices.Backward(l.layers) {
		if v, ok := layer[path]; ok {
			return v, true
		}
	}
	return value{}, false
}

func (l *loader) readFlags() layer {
	flags := layer{}
	for path, text := range l.opts.Flags {
		flags[path] = value{scalar: text, layer: FromFlag}
	}
	return flags
}

const envPrefix = "ECLUSE_"

// readEnviron reads ECLUSE_SERVE__HOLD as serve.hold. Letter case and single underscores do not
// matter within a key.
func (l *loader) readEnviron() layer {
	known := map[string]string{}
	for _, k := range keys(l.opts.Ecosystems) {
		known[foldEnv(strings.ReplaceAll(k.path, ".", "__"))] = k.path
	}
	for _, path := range l.rulePaths() {
		known[foldEnv(strings.ReplaceAll(path, ".", "__"))] = path
	}
	out := layer{}
	for _, kv := range l.opts.Environ {
		name, text, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours {
			continue
		}
		v := value{scalar: text, layer: FromEnv, source: name}
		path, ok := known[foldEnv(rest)]
		if !ok {
			path, ok = ruleEnv(rest)
		}
		if !ok {
			l.problems.add("", v, "unknown variable%s", didYouMean(name, envNames(known)))
			continue
		}
		if before, twice := out[path]; twice && before.source != name {
			l.problems.add(path, v, "set twice, by %s and by %s", before.source, name)
		}
		out[path] = v
	}
	return out
}

func foldEnv(s string) string {
	parts := strings.Split(s, "__")
	for i, p := range parts {
		parts[i] = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(p))
	}
	return strings.Join(parts, "__")
}

func envNames(known map[string]string) []string {
	var names []string
	for _, path := range known {
		names = append(names, envPrefix+strings.ToUpper(strings.NewReplacer(".", "__", "-", "_").Replace(path)))
	}
	slices.Sort(names)
	return names
}

// ruleEnv reads the variable of a rule that no other layer names: RULES__MY_RULE__TYPE is
// rules.my-rule.type.
func ruleEnv(rest string) (string, bool) {
	parts := strings.Split(strings.ToLower(rest), "__")
	if len(parts) != 3 || parts[0] != "rules" {
		return "", false
	}
	field := ""
	for _, f := range ruleFields() {
		if foldEnv(f) == foldEnv(parts[2]) {
			field = f
		}
	}
	return fmt.Sprintf("rules.%s.%s", strings.ReplaceAll(parts[1], "_", "-"), field), field != ""
}
