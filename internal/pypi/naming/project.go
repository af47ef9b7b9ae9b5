// Package naming knows what things of the Python package index are called: projects (PEP 503, PEP
// 508), releases (PEP 440), files (PEP 427, PEP 625 and what was before them), and the addresses in
// links.
package naming

import (
	"errors"
	"fmt"
)

// maxName bounds a project name. The index itself takes at most 80 characters.
const maxName = 214

// ErrName is wrapped by the errors of ParseName.
var ErrName = errors.New("not a Python project name")

// Normalize spells a project name as the index compares names (PEP 503): lower case, each run of
// "-", "_" and "." one "-". It does not validate.
func Normalize(name string) string {
	if canonical(name) {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case !separator(c):
			out = append(out, lower(c))
		case i == 0 || !separator(name[i-1]):
			out = append(out, '-')
		}
	}
	return string(out)
}

// ParseName validates a project name (PEP 508: ASCII letters, digits, "-", "_" and ".", a letter or
// digit at both ends) and returns its normalised spelling.
func ParseName(s string) (string, error) {
	if s == "" || len(s) > maxName {
		return "", fmt.Errorf("%w: %d characters, allowed are 1 to %d", ErrName, len(s), maxName)
	}
	if !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return "", fmt.Errorf("%w: %.64q", ErrName, s)
	}
	for i := range len(s) {
		if !alnum(s[i]) && !separator(s[i]) {
			return "", fmt.Errorf("%w: %.64q", ErrName, s)
		}
	}
	return Normalize(s), nil
}

// canonical reports whether a name is normalised.
func canonical(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', c == '_', c == '.', c == '-' && i > 0 && s[i-1] == '-':
			return false
		}
	}
	return true
}

func separator(c byte) bool { return c == '-' || c == '_' || c == '.' }

func alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
