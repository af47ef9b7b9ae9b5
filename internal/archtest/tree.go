package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of size. Beyond them a thing needs a line with a reason in the second table of the page.
const (
	maxFileLines     = 450  // any Go file
	maxFunctionLines = 45   // product code
	maxPackageLines  = 1500 // product code
)

// source is one Go file.
type source struct {
	name  string // path in the tree
	test  bool   // _test.go
	lines int
	ours  []string // imported packages of this module
	long  []string // functions over the limit, as "file: name", product code only
	named []string // what names an ecosystem, product code only

	syntax *ast.File
	files  *token.FileSet
}

// walk is what one reading of a tree collects.
type walk struct {
	module   string
	rooms    map[string][]source
	mentions mentions
	findings []string
}

// Check reads a tree and returns everything that breaks the rules, sorted, and the page
// [Requirements] as the tests would have it. module is the path of its Go module.
func Check(tree fs.FS, module string) (findings []string, requirements string) {
	p, findings := readPage(tree)
	w := walk{module: module, rooms: map[string][]source{}, mentions: newMentions()}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(name):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return w.read(name, text)
	})
	if err != nil {
		findings = append(findings, err.Error())
	}
	requirements, problems := w.mentions.check(tree)
	findings = slices.Concat(findings, w.findings, problems, checkRows(p), checkRooms(p, w.rooms),
		checkSizes(p, w.rooms), checkDependencies(tree))
	slices.Sort(findings)
	return slices.Compact(findings), requirements
}

// read takes one file in.
func (w *walk) read(name string, text []byte) error {
	w.findings = append(w.findings, checkText(name, text)...)
	if path.Ext(name) == ".md" && !inTestdata(name) {
		w.findings = append(w.findings, checkProse(name, text)...)
	}
	switch {
	case path.Ext(name) == ".go" && !inTestdata(name):
		src, err := readSource(name, text, w.module)
		if err != nil {
			return err
		}
		w.rooms[path.Dir(name)] = append(w.rooms[path.Dir(name)], src)
		w.findings = append(w.findings, slices.Concat(checkComments(src, text), checkGodoc(src))...)
		w.mentions.readGo(src)
	case path.Ext(name) == ".txt" && inTestdata(name):
		w.mentions.readScript(name, text)
	case path.Ext(name) == ".jsonl" && inTestdata(name):
		w.mentions.readVectors(name, text)
	case path.Ext(name) == ".md" && !inTestdata(name) && name != Requirements:
		w.mentions.note(name, false, string(text))
	}
	return nil
}

// skipped says which folders hold nothing of ours: what git ignores, and what is not committed.
func skipped(name string) bool {
	base := path.Base(name)
	switch base {
	case "node_modules", "bin", "dist", "ecluse-data":
		return true
	}
	return base != "." && base != ".ci" && strings.HasPrefix(base, ".")
}

func inTestdata(name string) bool { return strings.Contains("/"+name, "/testdata/") }

func readSource(name string, text []byte, module string) (source, error) {
	src := source{name: name, test: strings.HasSuffix(name, "_test.go"), lines: bytes.Count(text, []byte("\n"))}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return src, err
	}
	src.syntax, src.files = f, files
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return src, err
		}
		if room, ok := strings.CutPrefix(imported, module+"/"); ok {
			src.ours = append(src.ours, room)
		}
	}
	if src.test {
		return src, nil
	}
	src.named = ecosystemsNamed(files, f)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := files.Position(fn.End()).Line - files.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
			src.long = append(src.long, fmt.Sprintf("%s: %s", name, fn.Name.Name))
		}
	}
	return src, nil
}

// checkRooms compares the table with the import lines.
func checkRooms(p page, rooms map[string][]source) (findings []string) {
	for room, files := range rooms {
		r, ok := p.rows[room]
		if !ok {
			findings = append(findings, fmt.Sprintf("%s holds code and has no row in %s", room, Page))
			continue
		}
		for _, f := range files {
			findings = append(findings, checkImports(p, r, f)...)
			findings = append(findings, checkEcosystems(r, f)...)
		}
	}
	for room := range p.rows {
		if len(rooms[room]) == 0 {
			findings = append(findings, fmt.Sprintf("%s: %s has a row and no code", Page, room))
		}
	}
	return findings
}

func checkImports(p page, r row, f source) (findings []string) {
	for _, imported := range f.ours {
		other, known := p.rows[imported]
		switch {
		case imported == r.room || slices.Contains(r.may, imported):
		case known && other.level == test && (f.test || r.level == test):
		case known && other.level == test:
			findings = append(findings, fmt.Sprintf("%s: product code imports the test package %s", f.name, imported))
		default:
			findings = append(findings, fmt.Sprintf("%s: imports %s, which the row of %s does not name", f.name, imported, r.room))
		}
	}
	return findings
}

// checkSizes reports what has grown too large without a reason, and reasons for what is not too
// large any more.
func checkSizes(p page, rooms map[string][]source) (findings []string) {
	large := map[string]string{}
	for room, files := range rooms {
		total := 0
		for _, f := range files {
			if !f.test {
				total += f.lines
			}
			if f.lines > maxFileLines {
				large[f.name] = fmt.Sprintf("%d lines, more than %d", f.lines, maxFileLines)
			}
			for _, fn := range f.long {
				large[fn] = fmt.Sprintf("more than %d lines", maxFunctionLines)
			}
		}
		if total > maxPackageLines {
			large[room] = fmt.Sprintf("%d lines of product code, more than %d", total, maxPackageLines)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(large)) {
		if _, ok := p.exceptions[what]; !ok {
			findings = append(findings, fmt.Sprintf("%s: %s (split it, or give a reason in %s)", what, large[what], Page))
		}
	}
	for what := range p.exceptions {
		if _, ok := large[what]; !ok {
			findings = append(findings, fmt.Sprintf("%s: the exception for %s is not needed", Page, what))
		}
	}
	return findings
}
