package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Requirements is the page that says what each code stands for, and which tests name it.
const Requirements = "docs/requirements.md"

var (
	code = regexp.MustCompile(`\b(?:[RS][1-9]\d{0,2}|C\d{2}|(?:tc|rw)-\d{3})\b`)
	// two codes that stand for all between them
	codeRange = regexp.MustCompile(`\b([RS])([1-9]\d{0,2})(?:-|–|\s+to\s+)([RS])([1-9]\d{0,2})\b`)
	// the id of a test vector; all with one beginning have one row, "asc-*"
	vector    = regexp.MustCompile(`"id": ?"([a-z0-9]+-)\d+"`)
	wholeCode = regexp.MustCompile(`^(?:` + code.String() + `|[a-z0-9]+-\*)$`)
	// what a third column may not be where no test names the code: empty, or links to tests
	noReason = regexp.MustCompile(`\A\s*\z|\]\(`)
)

// mentions are the places of the tree that name a code: for each code, the test files that do, and
// any one file.
type mentions struct {
	tests map[string]map[string]bool
	any   map[string]string
}

func newMentions() mentions {
	return mentions{map[string]map[string]bool{}, map[string]string{}}
}

// find gives the codes of a text, those of a range with all between them.
func find(text string) []string {
	found := code.FindAllString(text, -1)
	for _, m := range codeRange.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[2]) // at most three digits, by the pattern
		last, _ := strconv.Atoi(m[4])
		for n := first; n <= last && m[1] == m[3]; n++ {
			found = append(found, m[1]+strconv.Itoa(n))
		}
	}
	return found
}

// note takes down the codes of a text; proof says that the file is a test.
func (m *mentions) note(file string, proof bool, text string) {
	for _, c := range find(text) {
		m.noteCode(file, proof, c)
	}
}

func (m *mentions) noteCode(file string, proof bool, c string) {
	if m.any[c] = file; !proof {
		return
	}
	if m.tests[c] == nil {
		m.tests[c] = map[string]bool{}
	}
	m.tests[c][file] = true
}

// readGo notes the codes in the comments of a Go file and, in tests, at the beginning of strings,
// where the names of cases have them. The suites of packages whose name ends in "test" are tests
// too.
func (m *mentions) readGo(src source) {
	proof := src.test || strings.HasSuffix(path.Dir(src.name), "test")
	for _, g := range src.syntax.Comments {
		m.note(src.name, proof, g.Text())
	}
	if !src.test {
		return
	}
	ast.Inspect(src.syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		for word := range strings.FieldsSeq(strings.Trim(lit.Value, "\"`")) {
			if !wholeCode.MatchString(word) {
				break
			}
			m.noteCode(src.name, true, word)
		}
		return true
	})
}

// readScript notes the codes in the comments of a script that a test runs.
func (m *mentions) readScript(name string, text []byte) {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			m.note(name, true, line)
		}
	}
}

// readVectors notes the ids of a file of test vectors.
func (m *mentions) readVectors(name string, text []byte) {
	for _, id := range vector.FindAllSubmatch(text, -1) {
		m.noteCode(name, true, string(id[1])+"*")
	}
}

// links is the third column of a code's row.
func (m *mentions) links(c string) string {
	var files []string
	for _, file := range slices.Sorted(maps.Keys(m.tests[c])) {
		files = append(files, fmt.Sprintf("[%s](../%s)", file, file))
	}
	return strings.Join(files, ", ")
}

// check compares the page with the tree in both directions, and returns the page as it should be:
// the third column from the tests, and a row to be filled in for each code that has none.
func (m *mentions) check(tree fs.FS) (page string, findings []string) {
	text, err := fs.ReadFile(tree, Requirements)
	if err != nil {
		return "", []string{err.Error()}
	}
	lines := strings.SplitAfter(string(text), "\n")
	rows := map[string]int{} // the line of each code
	for i, line := range lines {
		cells := cellsOf(line)
		if len(cells) != 3 || !wholeCode.MatchString(cells[0]) {
			continue
		}
		if _, twice := rows[cells[0]]; twice {
			findings = append(findings, fmt.Sprintf("%s: %s has two rows", Requirements, cells[0]))
		}
		rows[cells[0]] = i
		links, problems := m.checkRow(cells)
		findings = append(findings, problems...)
		lines[i] = rowOf(cells[0], cells[1], links)
	}
	for _, c := range slices.SortedFunc(maps.Keys(m.any), compareCodes) {
		if _, ok := rows[c]; ok {
			continue
		}
		row := rowOf(c, "", m.links(c))
		findings = append(findings, fmt.Sprintf("%s: %s, which %s names, has no row: run make fix, or write %q; "+
			"then say in its second column what holds, in one sentence of your own", Requirements, c, m.any[c], strings.TrimSpace(row)))
		at := place(rows, c)
		if at < 0 { // the first of its kind
			at = len(lines)
			lines = append(lines, fmt.Sprintf("\n## %s\n\n| code | what holds | tests |\n|---|---|---|\n", strings.TrimSuffix(kind(c), "-")))
		}
		lines[at] += row
		rows[c] = at
	}
	return strings.Join(lines, ""), findings
}

func rowOf(code, sentence, tests string) string {
	return fmt.Sprintf("| %s | %s | %s |\n", code, sentence, tests)
}

// checkRow gives the third column as it should be.
func (m *mentions) checkRow(cells []string) (tests string, findings []string) {
	report := func(text string) {
		findings = append(findings, fmt.Sprintf("%s: %s: %s", Requirements, cells[0], text))
	}
	if cells[1] == "" {
		report("say in the second column what holds, in one sentence of your own")
	}
	links := m.links(cells[0])
	switch {
	case links != "" && links != cells[2]:
		report(fmt.Sprintf("the third column is out of date: run make fix, or write %q", links))
		return links, findings
	case links == "" && m.any[cells[0]] == "":
		report("nothing in the tree names it: name it in the test that proves it, or remove the row")
	case links == "" && noReason.MatchString(cells[2]):
		report("no test names it: name it in the comment of the test that proves it, " +
			"or say in the third column why there is none")
	}
	return cells[2], findings
}

// place is the line of the page after which the row of a code belongs, -1 when its kind of code has
// no table yet.
func place(rows map[string]int, c string) int {
	after, before := -1, -1
	for other, line := range rows {
		switch {
		case kind(other) != kind(c):
		case compareCodes(other, c) < 0:
			after = max(after, line)
		case before < 0 || line < before:
			before = line
		}
	}
	if after < 0 && before > 0 {
		return before - 1
	}
	return after
}

func kind(c string) string { return strings.TrimRight(c, "0123456789*") }

// compareCodes orders codes of one kind by their numbers.
func compareCodes(a, b string) int {
	return cmp.Or(cmp.Compare(kind(a), kind(b)), cmp.Compare(number(a), number(b)))
}

func number(c string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(c, kind(c))) // at most three digits, by the pattern
	return n
}
