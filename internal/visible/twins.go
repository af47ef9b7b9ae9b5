package visible

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const latinScript = "Latin"

// mixable are scripts that are written together with Latin letters, and with one another.
var mixable = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Common, unicode.Inherited}

// scriptOf is the script of a letter, "" for all that goes with any.
func scriptOf(r rune) string {
	switch {
	case !unicode.IsLetter(r) || unicode.In(r, mixable...):
		return ""
	case r <= unicode.MaxASCII || unicode.Is(unicode.Latin, r):
		return latinScript
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return "unknown"
}

// latinTwins are the letters of other scripts that most fonts draw like an ASCII letter: of
// Cyrillic, Greek, Armenian and Cherokee.
const latinTwins = "аеорсухіјѕһԁԛԝӏѵАВЕКМНОРСТХУІЈЅԚԜҮӀѴ" + "ονανριυχκΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ" + "օոսհցզյԼՕՍ" + "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ"

// asciiTwins are other characters that look like one of ASCII and that compatibility does not say
// so of: slashes, dots, hyphens, colons, commas, bars and letters.
const asciiTwins = "⁄∕⧸╱⟋⼃〳∖⧵⧹⟍╲" + "ꓸ·܁܂" + "‐‑‒–−˗⁃" + "꞉∶։׃˸" + "‚٫" + "ǀǃ∣❘│" + "ıȷɑɡɩɪʟʀꜱᴏᴄᴠᴡᴢ" + "ʹʻʼʽˈ′‵"

// imitates says that a rune by itself looks like one of ASCII: it is one in another width or style,
// or a twin.
func imitates(r rune) bool {
	if r <= unicode.MaxASCII {
		return false
	}
	if strings.ContainsRune(asciiTwins, r) {
		return true
	}
	plain := norm.NFKD.String(string(r))
	for i := range len(plain) {
		if plain[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}
