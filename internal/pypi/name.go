// Package pypi holds all that changes when the Python package index protocol changes: project names and their spellings in paths, project
// pages in both forms (PEP 503 HTML, PEP 691 JSON) and how views of them are rendered, content negotiation, file names, and the error
// dialect. It opens no socket and decides nothing.
//
// Both forms become one document: an HTML page is read into the JSON form first. One entry of a document is one file, so that a file
// that was added later to an old release is judged by its own age.
package pypi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Ecosystem is the ecosystem's name in [registry.Package].
const Ecosystem = "pypi"

// maxName bounds a project name. The index itself takes at most 80 characters.
const maxName = 214

// ErrName is wrapped by the errors of ParseName.
var ErrName = errors.New("not a Python project name")

// Normalize spells a project name as the index compares names (PEP 503): lower case, each run of "-", "_" and "." one "-". It does not
// validate.
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

// ParseName validates a project name (PEP 508: ASCII letters, digits, "-", "_" and ".", a letter or digit at both ends) and returns its
// normalised spelling.
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

// ListingPath is the outbound path of a project's page below the index's base, which ends in "/simple".
func ListingPath(name string) string { return "/" + url.PathEscape(Normalize(name)) + "/" }

// FilePath is the path of a file below the mount, as the pages link it. Every byte of a valid file name may stand in a path as it is.
func FilePath(name, file string) string { return "/files/" + Normalize(name) + "/" + file }

// ErrorBody is a refusal in the index's dialect: one line of text (R37).
func ErrorBody(message string) []byte {
	return []byte(strings.Join(strings.Fields(message), " ") + "\n")
}
