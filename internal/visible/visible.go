// Package visible shows text from outside so that a person who reads it is not deceived: what
// cannot be seen, what turns the direction of a line, and what looks like another character is
// escaped. It changes how text is shown and never what is meant: files and digests hold the names
// as they are.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Name shows one name, such as that of a file: as it is when it is plain, else in double quotes
// with escapes as in Go. A name with a quote, a backslash, two spaces together or a space at an end
// is not plain, so that nothing around it can be taken for a part of it, or it for what is around
// it.
func Name(name string) string {
	odd := name == "" || name != strings.TrimSpace(name) || strings.ContainsAny(name, "\"\\\n\t") || strings.Contains(name, "  ")
	if odd || Text(name) != name {
		return Quote(name)
	}
	return name
}

// Quote is Name that always quotes.
func Quote(name string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(name)
	return `"` + escape(quoted, goEscape) + `"`
}

// Text shows a message that may hold names: what deceives is escaped where it stands. Line feeds
// and tabs stay.
func Text(text string) string { return escape(text, goEscape) }

// JSON shows a JSON document: what deceives becomes an escape of JSON, so that the document says
// the same to a program.
func JSON(document []byte) []byte {
	return []byte(escape(string(document), jsonEscape))
}

func goEscape(r rune) string {
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func jsonEscape(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// escape replaces every rune that deceives, and every byte that is no UTF-8.
func escape(text string, with func(rune) string) string {
	if plain(text) {
		return text
	}
	runes := []rune(text)
	bad := deceptive(runes)
	var b strings.Builder
	for at, i := 0, 0; at < len(text); i++ {
		_, width := utf8.DecodeRuneInString(text[at:])
		switch part := text[at : at+width]; {
		case width == 1 && text[at] >= 0x80:
			fmt.Fprintf(&b, `\x%02x`, text[at])
		case bad[i]:
			b.WriteString(with(runes[i]))
		default:
			b.WriteString(part)
		}
		at += width
	}
	return b.String()
}

// plain is a quick look: a text of printable ASCII has nothing to escape.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x7f || r < ' ' && r != '\n' && r != '\t' })
}

// deceptive marks the runes that a reader cannot see or would take for others.
func deceptive(text []rune) []bool {
	bad := make([]bool, len(text))
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && wordly(text[i]) {
			continue
		}
		imitations(text[begin:i], bad[begin:i])
		if i < len(text) {
			bad[i] = hidden(text[i]) || imitates(text[i])
		}
		begin = i + 1
	}
	return bad
}

// wordly says that a rune is part of a word, in which scripts are not mixed.
func wordly(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// hidden says that a rune shows nothing, or steers how others are shown. A line feed and a tab do
// not count: the reader sees what they do.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u2800': // a Braille pattern without dots
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// imitations marks what deceives in one word. In a word with Latin letters, letters of other
// scripts do; a word of one other script does when each of its letters has a Latin twin; so do
// digits that are not ASCII's, and a mark on a Latin letter, which a letter of its own could be.
func imitations(word []rune, bad []bool) {
	latin, other, twins := false, "", true
	for _, r := range word {
		script := scriptOf(r)
		switch {
		case script == "":
		case script == latinScript:
			latin = true
		default:
			if other != "" && other != script {
				latin = true // a mixture, whether with Latin letters or without
			}
			other, twins = script, twins && strings.ContainsRune(latinTwins, r)
		}
	}
	for i, r := range word {
		script := scriptOf(r)
		mark := unicode.Is(unicode.M, r) && (i == 0 || scriptOf(word[i-1]) == latinScript || bad[i-1])
		foreign := script != "" && script != latinScript && (latin || twins)
		bad[i] = hidden(r) || imitates(r) || foreign || mark || r > unicode.MaxASCII && unicode.Is(unicode.Nd, r)
	}
}
