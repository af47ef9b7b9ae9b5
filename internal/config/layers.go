package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Layer says where a value came from.
type Layer string

// The layers, from the weakest to the strongest. FromNPM stands for npm's own configuration, asked last of all.
const (
	FromDefault Layer = "default"
	FromFile    Layer = "file"
	FromEnv     Layer = "environment"
	FromFlag    Layer = "flag"
	FromNPM     Layer = "npm configuration"
)

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

const (
	maxFile  = 1 << 20
	maxDepth = 8
)

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

func (l *loader) readFile() layer {
	if l.opts.File == "" {
		return nil
	}
	data, err := l.opts.ReadFile(l.opts.File)
	if errors.Is(err, fs.ErrNotExist) {
		l.problems.add("", value{}, "the configuration file %s does not exist", l.opts.File)
		return nil
	}
	if err != nil {
		l.problems.add("", value{}, "the configuration file cannot be read: %v", err)
		return nil
	}
	if len(data) > maxFile {
		l.problems.add("", value{}, "the configuration file has %d bytes; at most %d are read", len(data), maxFile)
		return nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		// Without its source, since the line may hold what should not be shown.
		l.problems.add("", value{}, "not readable as YAML: %s", strings.TrimSpace(yaml.FormatError(err, false, false)))
		return nil
	}
	out := layer{}
	for i, doc := range file.Docs {
		if i > 0 {
			l.problems.add("", value{line: doc.GetToken().Position.Line, layer: FromFile}, "a second YAML document; only one is allowed")
			break
		}
		if doc.Body != nil {
			l.walk(out, nil, doc.Body)
		}
	}
	return out
}

// walk collects the leaves below node into out.
func (l *loader) walk(out layer, path []string, node ast.Node) {
	at := strings.Join(path, ".")
	v := value{layer: FromFile, line: node.GetToken().Position.Line}
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(path) >= maxDepth {
			l.problems.add(at, v, "nested too deeply")
			return
		}
		for _, kv := range n.Values {
			l.walkPair(out, path, kv)
		}
	case *ast.MappingValueNode:
		l.walkPair(out, path, n)
	case *ast.SequenceNode:
		v.isList = true
		for _, item := range n.Values {
			text, ok := scalarText(item)
			if !ok {
				l.problems.add(at, value{layer: FromFile, line: item.GetToken().Position.Line}, "a list may hold plain values only")
				return
			}
			v.list = append(v.list, text)
		}
		l.put(out, at, v)
	case *ast.NullNode:
		v.null = true
		l.put(out, at, v)
	case *ast.CommentGroupNode:
	default:
		text, ok := scalarText(node)
		if !ok {
			l.problems.add(at, v, "%s is not understood here; write the value itself", strings.ToLower(node.Type().String()))
			return
		}
		v.scalar = text
		l.put(out, at, v)
	}
}

func (l *loader) put(out layer, at string, v value) {
	if at == "" {
		if !v.null {
			l.problems.add("", v, "the file must hold settings (key: value)")
		}
		return
	}
	out[at] = v
}

func (l *loader) walkPair(out layer, path []string, kv *ast.MappingValueNode) {
	name, ok := scalarText(kv.Key)
	v := value{layer: FromFile, line: kv.Key.GetToken().Position.Line}
	switch {
	case !ok || name == "":
		l.problems.add(strings.Join(path, "."), v, "a key must be a plain word (merge keys and aliases are not understood)")
	case strings.Contains(name, "."):
		l.problems.add(strings.Join(append(slices.Clone(path), name), "."), v, "a key may not hold a dot; nest the settings instead")
	default:
		if _, isNull := kv.Value.(*ast.NullNode); isNull {
			out[strings.Join(append(slices.Clone(path), name), ".")] = value{layer: FromFile, line: v.line, null: true}
			return
		}
		l.walk(out, append(slices.Clone(path), name), kv.Value)
	}
}

// scalarText returns the text of a plain value as it was written, so that 0600 and 1e3 stay what they look like.
func scalarText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return node.GetToken().Value, true
	}
	return "", false
}

const envPrefix = "ECLUSE_"

// readEnviron reads ECLUSE_SERVE__HOLD as serve.hold. Letter case and single underscores do not matter within a key.
func (l *loader) readEnviron() layer {
	known := map[string]string{}
	for _, k := range keys() {
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

// ruleEnv reads the variable of a rule that no other layer names: RULES__MY_RULE__TYPE is rules.my-rule.type.
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
