package config

import (
	"log/slog"
	"strings"
)

// Secret is a text that does not print itself, whatever the verb; Reveal gives it away.
type Secret struct{ text string }

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String stands in for the text.
func (s Secret) String() string { return "[secret]" }

// GoString stands in for the text under %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText stands in for the text in JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue stands in for the text in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// readOnly is the word after a token whose holder may not publish.
const readOnly = "read"

// parseTokens reads lines of "name token" or "name token read". Empty lines and lines that begin
// with # are skipped. Messages name the line and never the token.
func (l *loader) parseTokens(data []byte, v value) []Token {
	const path = "auth.tokensFile"
	var tokens []Token
	names, secrets := map[string]bool{}, map[string]bool{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
			continue
		case len(fields) != 2 && (len(fields) != 3 || fields[2] != readOnly):
			l.problems.add(path, v, "line %d: write a name and a token, separated by one space; after them only the word read may stand", n)
			continue
		case names[fields[0]] || secrets[fields[1]]:
			l.problems.add(path, v, "line %d: duplicate name or token", n)
			continue
		}
		names[fields[0]], secrets[fields[1]] = true, true
		tokens = append(tokens, Token{Name: fields[0], Secret: NewSecret(fields[1]), ReadOnly: len(fields) == 3})
	}
	if len(tokens) == 0 {
		l.problems.add(path, v, "contains no token; an empty file would lock everyone out")
	}
	return tokens
}
