package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxPublicNames bounds what one public package exports: constants, variables, functions and types,
// methods aside.
const maxPublicNames = 50

// codes are the requirements and cases that tests name. They lead nowhere for a reader of the
// public documentation.
var codes = regexp.MustCompile(`\b(?:[RSC]\d{1,3}|(?:asc|rw|tc)-\d+)\b|\bspec(?: section|:| [A-Z]\d)`)

// Public reads the packages whose rows say "(public)", and returns what a stranger could not use or
// understand in them, sorted, and the names that each of them exports. module is the path of the Go
// module.
func Public(tree fs.FS, module string) (findings []string, names map[string][]string) {
	text, err := fs.ReadFile(tree, Page)
	if err != nil {
		return []string{err.Error()}, nil
	}
	names = map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := cellsOf(line)
		if len(cells) != 5 || !strings.Contains(cells[2], "(public)") {
			continue
		}
		p := publicPackage{room: strings.Trim(cells[1], "`"), internal: module + "/internal/"}
		if err := p.read(tree); err != nil {
			findings = append(findings, err.Error())
		}
		if !p.stability {
			findings = append(findings, p.room+": its documentation has no paragraph # Stability")
		}
		if len(p.names) > maxPublicNames {
			findings = append(findings, fmt.Sprintf("%s: exports %d names, more than %d", p.room, len(p.names), maxPublicNames))
		}
		findings = append(findings, p.findings...)
		slices.Sort(p.names)
		names[p.room] = p.names
	}
	slices.Sort(findings)
	return findings, names
}

// publicPackage is what is known of one package while it is read.
type publicPackage struct {
	room, internal string
	stability      bool
	names          []string
	findings       []string

	positions *token.FileSet
	imports   map[string]bool // the names under which the file at hand imports internal packages
}

func (p *publicPackage) read(tree fs.FS) error {
	files, err := fs.Glob(tree, path.Join(p.room, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		p.positions, p.imports = token.NewFileSet(), map[string]bool{}
		f, err := parser.ParseFile(p.positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.file(f)
	}
	return nil
}

func (p *publicPackage) file(f *ast.File) {
	for _, spec := range f.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil && strings.HasPrefix(imported, p.internal) {
			name := path.Base(imported)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			p.imports[name] = true
		}
	}
	p.documented(f.Doc)
	p.stability = p.stability || strings.Contains(f.Doc.Text(), "# Stability\n")
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.function(d)
		case *ast.GenDecl:
			p.group(d)
		}
	}
}

func (p *publicPackage) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() || d.Recv != nil && !receiver(d.Recv.List[0].Type).IsExported() {
		return
	}
	if d.Recv == nil {
		p.names = append(p.names, d.Name.Name)
	}
	p.documented(d.Doc)
	p.shown(d.Name.Name, d.Type)
}

// receiver is the type that a method belongs to.
func receiver(t ast.Expr) *ast.Ident {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t
	}
	return ast.NewIdent("_")
}

func (p *publicPackage) group(d *ast.GenDecl) {
	before := len(p.names)
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				p.names = append(p.names, s.Name.Name)
				p.documented(s.Doc, s.Comment)
				p.shown(s.Name.Name, s.Type)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					p.names = append(p.names, name.Name)
					p.documented(s.Doc, s.Comment)
					p.shown(name.Name, s)
				}
			}
		}
	}
	if len(p.names) > before {
		p.documented(d.Doc)
	}
}

// documented looks for codes in comments that the documentation shows.
func (p *publicPackage) documented(comments ...*ast.CommentGroup) {
	for _, group := range comments {
		if code := codes.FindString(group.Text()); code != "" {
			at := p.positions.Position(group.Pos())
			p.findings = append(p.findings, fmt.Sprintf("%s:%d: the documentation names %s, which leads a reader nowhere", at.Filename, at.Line, code))
		}
	}
}

// shown walks over what the documentation shows of a declaration: fields and methods that are not
// exported are left out.
func (p *publicPackage) shown(name string, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.StructType:
			p.members(name, n.Fields)
			return false
		case *ast.InterfaceType:
			p.members(name, n.Methods)
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && p.imports[x.Name] {
				at := p.positions.Position(n.Pos())
				p.findings = append(p.findings, fmt.Sprintf("%s:%d: %s shows %s.%s, which nobody outside of this module can name",
					at.Filename, at.Line, name, x.Name, n.Sel.Name))
			}
		}
		return true
	})
}

func (p *publicPackage) members(name string, list *ast.FieldList) {
	for _, member := range list.List {
		if len(member.Names) == 0 || slices.ContainsFunc(member.Names, (*ast.Ident).IsExported) {
			p.documented(member.Doc, member.Comment)
			p.shown(name, member.Type)
		}
	}
}
