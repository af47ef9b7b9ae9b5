// Package archtest enforces docs/architecture.md: which package may import which, how large things
// may grow, and what no file of the project may name. It compares docs/requirements.md with the
// codes that the tree names. Everything is read inside the test process, so that the test cache
// notices each change. No code imports it.
package archtest

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Page is the document that holds the tables.
const Page = "docs/architecture.md"

// Levels that are no number: the one command on top of everything, and the packages that only tests
// import.
const (
	roof = 1 << 20
	test = -1
)

type row struct {
	room  string
	level int
	may   []string
	// namesNone tells that the room's product code names no ecosystem.
	namesNone bool
}

type exception struct{ what, why string }

type page struct {
	rows       map[string]row
	exceptions map[string]exception
}

// readPage reads both tables. What is wrong with the page itself is among the findings.
func readPage(tree fs.FS) (p page, findings []string) {
	p = page{rows: map[string]row{}, exceptions: map[string]exception{}}
	text, err := fs.ReadFile(tree, Page)
	if err != nil {
		return p, []string{err.Error()}
	}
	for line := range strings.Lines(string(text)) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 5 && isCode(cells[1]):
			r, err := readRow(cells)
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: row %s: %v", Page, cells[1], err))
			}
			if _, twice := p.rows[r.room]; twice {
				findings = append(findings, fmt.Sprintf("%s: %s has two rows", Page, r.room))
			}
			p.rows[r.room] = r
		case len(cells) == 2 && isCode(cells[0]):
			e := exception{what: strings.Trim(cells[0], "`"), why: cells[1]}
			if e.why == "" {
				findings = append(findings, fmt.Sprintf("%s: the exception for %s gives no reason", Page, e.what))
			}
			p.exceptions[e.what] = e
		}
	}
	if len(p.rows) == 0 {
		findings = append(findings, Page+": no table of packages was found")
	}
	return p, findings
}

func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func isCode(cell string) bool { return len(cell) > 2 && cell[0] == '`' && cell[len(cell)-1] == '`' }

func readRow(cells []string) (row, error) {
	r := row{room: strings.Trim(cells[1], "`"), namesNone: strings.Contains(cells[3], namesNone)}
	switch cells[0] {
	case "roof":
		r.level = roof
	case "test":
		r.level = test
	default:
		n, err := strconv.Atoi(cells[0])
		if err != nil || n < 0 {
			return r, fmt.Errorf("level %q is neither a number nor roof nor test", cells[0])
		}
		r.level = n
	}
	for name := range strings.SplitSeq(cells[4], ",") {
		if name = strings.TrimSpace(name); isCode(name) {
			r.may = append(r.may, strings.Trim(name, "`"))
		} else if name != "" {
			return r, fmt.Errorf("%q in the last column is no package in backquotes", name)
		}
	}
	return r, nil
}

// checkRows looks at the table alone: a row may name only packages below it.
func checkRows(p page) (findings []string) {
	for _, r := range p.rows {
		for _, name := range r.may {
			other, ok := p.rows[name]
			switch {
			case !ok:
				findings = append(findings, fmt.Sprintf("%s: the row of %s names %s, which has no row", Page, r.room, name))
			case r.level == test:
			case other.level == test:
				findings = append(findings, fmt.Sprintf("%s: the row of %s names %s, a test package", Page, r.room, name))
			case other.level >= r.level:
				findings = append(findings, fmt.Sprintf("%s: the row of %s names %s, which does not lie below it", Page, r.room, name))
			}
		}
	}
	slices.Sort(findings)
	return findings
}
