package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of the configuration file.
const (
	maxFile    = 1 << 20
	maxDepth   = 8  // of groups of settings
	maxNesting = 32 // of anything, before the parser gives up
)

// readFile reads the file's layer. Only the syntax tree is used: values stay the text that was
// written.
func (l *loader) readFile() layer {
	if l.opts.File == "" {
		return nil
	}
	data, err := l.opts.ReadFile(l.opts.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.problems.add("", value{}, "the configuration file %s does not exist", l.opts.File)
		return nil
	case err != nil:
		l.problems.add("", value{}, "the configuration file cannot be read: %v", err)
		return nil
	case len(data) > maxFile:
		l.problems.add("", value{}, "the configuration file has %d bytes; at most %d are read", len(data), maxFile)
		return nil
	}
	if line, what := strayCharacter(data); what != "" {
		l.problems.add("", inFile(line), "%s; the file must be text in UTF-8", what)
		return nil
	}
	out := layer{}
	if err := l.readDocument(out, data); err != nil {
		line, text := syntaxProblem(err, data)
		l.problems.add("", inFile(line), "not readable as YAML: %s", text)
		return nil
	}
	// admin has a key below it, and a file cannot write both but like this
	if v, ok := out[adminListen]; ok {
		out[adminAddress] = v
		delete(out, adminListen)
	}
	return out
}

// adminListen is how a file spells admin beside other keys of it: admin: {listen: …, tokenFile: …}.
const adminListen = "admin.listen"

func inFile(line int) value { return value{layer: FromFile, line: line} }

// readDocument reads the one document that the file may hold.
func (l *loader) readDocument(out layer, data []byte) error {
	limits := loaderlimits.New(loaderlimits.DepthValue(maxNesting))
	docs, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(limits))
	if err != nil {
		return err
	}
	var first, second yaml.Node
	if err := docs.Load(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	switch err := docs.Load(&second); {
	case err == nil:
		l.problems.add("", inFile(second.Line), "a second YAML document; only one is allowed")
	case !errors.Is(err, io.EOF):
		return err
	}
	for _, node := range first.Content {
		l.walk(out, nil, node)
	}
	return nil
}

// strayCharacter finds what has no place in a configuration: bytes that are not UTF-8, control
// characters, and characters that some readers of YAML take for the end of a line and people do not
// see.
func strayCharacter(data []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return line, fmt.Sprintf("the byte 0x%02x is not UTF-8", data[i])
		case r == '\n', r == '\r' && !bytes.HasPrefix(data[i:], []byte("\r\n")):
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r == 0x85, r == 0x2028, r == 0x2029, r == 0xfeff && i > 0, r == 0xfffe, r == 0xffff:
			return line, fmt.Sprintf("the character U+%04X is not allowed", r)
		}
		i += size
	}
	return line, ""
}

// syntaxProblem is what the parser says, without the text of the file, since a line may hold what
// should not be shown.
func syntaxProblem(err error, data []byte) (line int, text string) {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return 0, err.Error()
	}
	text = e.Message
	switch begin := e.ContextMark.Line; {
	case strings.HasPrefix(text, "unknown anchor"):
		text = "a value that begins with * is an alias, which is not supported; quote it if it is text"
	case strings.Contains(text, "incompatible YAML document"):
		text = "the %YAML directive names an unsupported version; remove the line"
	case e.ContextMsg != "" && begin > 0 && begin < e.Mark.Line:
		text += fmt.Sprintf(" %s that begins on line %d", e.ContextMsg, begin)
	case e.ContextMsg != "":
		text += " " + e.ContextMsg
	}
	lines := strings.Split(strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n"), "\n")
	line = min(e.Mark.Line, len(lines)) // what is missing at the end is missed on the line after it
	if line > 0 && strings.HasPrefix(strings.TrimLeft(lines[line-1], " "), "\t") {
		text += "; indent with spaces, not with tabs"
	} else if strings.HasPrefix(text, "found character that cannot start any token") {
		text = "a value that begins with @, % or a backquote must be quoted"
	}
	return line, text
}

// walk collects the leaves below node into out.
func (l *loader) walk(out layer, path []string, node *yaml.Node) {
	at, v := strings.Join(path, "."), inFile(node.Line)
	if what := indirection(node); what != "" {
		l.problems.add(at, v, "%s is not supported; write the value itself", what)
		return
	}
	switch node.Kind {
	case yaml.MappingNode:
		if len(path) >= maxDepth {
			l.problems.add(at, v, "nested too deeply")
			return
		}
		l.walkGroup(out, path, node)
		return
	case yaml.SequenceNode:
		v.isList = true
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) || indirection(item) != "" {
				l.problems.add(at, inFile(item.Line), "a list may contain plain values only")
				return
			}
			v.list = append(v.list, item.Value)
		}
	default:
		if v.null = isNull(node); !v.null {
			// as it was written, so that 0600 and 1e3 stay what they look like
			v.scalar = node.Value
		}
	}
	switch {
	case at != "":
		out[at] = v
	case !v.null:
		l.problems.add("", v, "the file must consist of settings (key: value)")
	}
}

// walkGroup collects what one mapping holds. An empty one is kept as well: its name may be wrong.
func (l *loader) walkGroup(out layer, path []string, group *yaml.Node) {
	if len(group.Content) == 0 && len(path) > 0 {
		v := inFile(group.Line)
		v.group = true
		out[strings.Join(path, ".")] = v
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(group.Content); i += 2 {
		key, below := group.Content[i], group.Content[i+1]
		name := key.Value
		full := append(slices.Clone(path), name)
		at := strings.Join(full, ".")
		switch first, twice := lines[name]; {
		case key.Kind != yaml.ScalarNode || name == "" || isNull(key) || key.ShortTag() == "!!merge" || indirection(key) != "":
			l.problems.add(strings.Join(path, "."), inFile(key.Line), "a key must be a plain word (merge keys and aliases are not supported)")
		case strings.Contains(name, ".") && at != budgetPrefix+name:
			l.problems.add(at, inFile(key.Line), "a key may not contain a dot; nest the settings instead")
		case twice:
			l.problems.add(at, inFile(key.Line), "duplicate key; first on line %d", first)
		default:
			lines[name] = key.Line
			if isNull(below) { // nothing, which the parser finds on the line of what comes next
				below.Line = key.Line
			}
			l.walk(out, full, below)
		}
	}
}

// indirection names what makes a node say something else than its text: an anchor, an alias or a
// tag.
func indirection(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.AliasNode:
		return "an alias"
	case node.Anchor != "":
		return "an anchor"
	case node.Style&yaml.TaggedStyle != 0:
		return "a tag"
	}
	return ""
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }
