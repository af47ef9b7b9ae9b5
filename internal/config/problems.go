package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Key    string // path of the setting, "" when it is about none
	Layer  Layer
	Line   int    // in the file, 0 when unknown
	Source string // the environment variable, for FromEnv
	Text   string
}

// Problems is everything that is wrong, as one error.
type Problems struct {
	File string
	List []Problem
}

// Error lists every problem on a line of its own, with its place.
func (p *Problems) Error() string {
	var b strings.Builder
	if len(p.List) == 1 {
		b.WriteString("1 problem in the configuration:")
	} else {
		fmt.Fprintf(&b, "%d problems in the configuration:", len(p.List))
	}
	for _, q := range p.List {
		b.WriteString("\n  " + p.place(q) + q.Text)
	}
	return b.String()
}

func (p *Problems) place(q Problem) string {
	var b strings.Builder
	switch {
	case q.Layer == FromFile && q.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", p.File, q.Line)
	case q.Layer == FromEnv:
		b.WriteString(q.Source + ": ")
	case q.Layer == FromFlag:
		b.WriteString("flag: ")
	}
	if q.Key != "" {
		b.WriteString(q.Key + ": ")
	}
	return b.String()
}

func (p *Problems) add(key string, v value, format string, args ...any) {
	p.List = append(p.List, Problem{Key: key, Layer: v.layer, Line: v.line, Source: v.source, Text: fmt.Sprintf(format, args...)})
}

func (p *Problems) orNil() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int { return a.Line - b.Line })
	return p
}

// fail notes a problem of one key's own value, so that later checks leave the key alone.
func (l *loader) fail(path string, v value, format string, args ...any) {
	l.failed[path] = true
	l.problems.add(path, v, format, args...)
}

// problemf is fmt.Errorf for texts that go into a Problem.
func problemf(format string, args ...any) error { return fmt.Errorf(format, args...) }

var errGroup = errors.New("is a setting, not a group of settings")

// quote shows a foreign text, shortened; a text that may hold a password is not shown at all.
func quote(s string) string {
	if strings.Contains(s, "@") && strings.Contains(s, "//") {
		return "the value (not shown: it may contain a password)"
	}
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// didYouMean names the candidate nearest to s, if one is near enough.
func didYouMean(s string, candidates []string) string {
	best, most := "", len(s)/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(s), strings.ToLower(c)); d < most {
			best, most = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
