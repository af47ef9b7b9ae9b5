// Package requestid decides which request identifiers of a server may be kept and shown (spec S36).
// An identifier is foreign text: what does not look like one is withheld, whole, so that nothing a
// server says can reach a record or a terminal by this door.
package requestid

// Withheld stands for an identifier that was present but not safe. It is stable: Sanitize(Withheld)
// is Withheld.
const Withheld = "[withheld]"

// MaxLen is the longest safe identifier in bytes.
const MaxLen = 128

// Safe reports whether id starts with an ASCII letter or digit and goes on with at most 127 of
// ASCII letters, digits, '.', '_', ':' and '-'.
func Safe(id string) bool {
	if id == "" || len(id) > MaxLen {
		return false
	}
	for i := range len(id) {
		c := id[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != ':' && c != '-') {
			return false
		}
	}
	return true
}

// Sanitize gives a safe id unchanged, an absent one ("") unchanged, and [Withheld] for everything
// else.
func Sanitize(id string) string {
	if id == "" || Safe(id) {
		return id
	}
	return Withheld
}
