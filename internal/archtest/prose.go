package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Comments and pages are wrapped at columns; a tab takes tabWidth of them.
const (
	columns  = 100
	tabWidth = 4
)

func width(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// tooWide reports whether a line should have been broken: it is too long, and more than one word.
func tooWide(line, text string) bool {
	return width(line) > columns && strings.ContainsAny(strings.TrimSpace(text), " \t")
}

// checkComments looks for comments that reach too far to the right. Directives and the examples of
// doc comments are left alone.
func checkComments(src source, text []byte) (findings []string) {
	lines := bytes.Split(text, []byte("\n"))
	for _, g := range src.syntax.Comments {
		for _, c := range g.List {
			words, ok := strings.CutPrefix(c.Text, "// ")
			n := src.files.Position(c.Pos()).Line
			if ok && tooWide(string(lines[n-1]), words) {
				findings = append(findings, fmt.Sprintf("%s:%d: a comment of more than %d columns", src.name, n, columns))
			}
		}
	}
	return findings
}

var (
	marker = regexp.MustCompile(`^[\s>]*(?:[-*+]|\d+\.)? +`)
	span   = regexp.MustCompile("`[^`]+`")
	// a table, a heading, HTML, the target of a link, a picture
	noProse = regexp.MustCompile(`^\s*(?:\||#|<|\[[^\]]+\]:|\[?!\[)`)
	begins  = regexp.MustCompile(`^<!-- \S+: begin -->$`)
	ends    = regexp.MustCompile(`^<!-- \S+: end -->$`)
)

// checkProse looks for paragraphs of a page that are not wrapped. Tables, code and what a program
// writes (between "begin" and "end") are left alone.
func checkProse(name string, text []byte) (findings []string) {
	n, code, generated, list := 0, false, false, false
	blank := true // the line before
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case begins.MatchString(line) || ends.MatchString(line):
			generated = begins.MatchString(line)
		case marker.MatchString(line) && !strings.HasPrefix(line, "    "):
			list = true
		case blank && !strings.HasPrefix(line, " "):
			list = false
		}
		indented := strings.HasPrefix(line, "    ") && !list
		prose := span.ReplaceAllString(marker.ReplaceAllString(line, ""), "x")
		if !code && !generated && !indented && !noProse.MatchString(line) && tooWide(line, prose) {
			findings = append(findings, fmt.Sprintf("%s:%d: a line of more than %d columns", name, n, columns))
		}
		blank = line == ""
	}
	return findings
}

// checkGodoc looks for codes in what readers of a public package see: all comments outside of
// functions, and those of its examples.
func checkGodoc(src source) (findings []string) {
	if strings.HasPrefix(src.name, "internal/") || src.syntax.Name.Name == "main" {
		return nil
	}
	for _, g := range src.syntax.Comments {
		if found := find(g.Text()); len(found) > 0 && (!src.test && !inside(src.syntax, g) || isExample(src.syntax, g)) {
			findings = append(findings, fmt.Sprintf("%s:%d: the documentation of a public package names %s: "+
				"say it in words, and name the code in a test", src.name, src.files.Position(g.Pos()).Line, found[0]))
		}
	}
	return findings
}

// inside reports whether a comment is in the body of a function.
func inside(f *ast.File, g *ast.CommentGroup) bool {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Body != nil && g.Pos() > fn.Body.Pos() && g.End() <= fn.Body.End() {
			return true
		}
	}
	return false
}

// isExample reports whether a comment is the documentation of an example.
func isExample(f *ast.File, g *ast.CommentGroup) bool {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Doc == g && strings.HasPrefix(fn.Name.Name, "Example") {
			return true
		}
	}
	return false
}
