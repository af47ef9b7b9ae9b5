package naming

import "strings"

// MaxVersion bounds a version, in bytes.
const MaxVersion = 128

// NormalizeVersion spells a version as PEP 440 normalises it ("V1.0-Beta_1" is "1.0b1"). It reports
// false for what is no version there. Trailing zeros stay: "1.0" and "1.0.0" are equal to
// installers and two spellings here.
func NormalizeVersion(s string) (string, bool) {
	if simple(s) {
		return s, true
	}
	if len(s) > MaxVersion {
		return "", false
	}
	p := versionParser{rest: strings.ToLower(strings.TrimSpace(s))}
	if !p.parse() || p.rest != "" {
		return "", false
	}
	return string(p.out), true
}

// simple reports whether a version is of the kind that most are, numbers and dots, which is its own
// normalised spelling.
func simple(s string) bool {
	if s == "" || len(s) > MaxVersion {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i < len(s) && digit(s[i]):
			continue
		case i < len(s) && s[i] != '.', i == start, s[start] == '0' && i > start+1:
			return false
		}
		start = i + 1
	}
	return true
}

// EqualKey is a spelling that equal versions share (PEP 440, version comparison): the normalised
// one without the zeros at the end of the release. Of what is no version it is the text in lower
// case.
func EqualKey(s string) string {
	v, ok := NormalizeVersion(s)
	if !ok {
		return strings.ToLower(s)
	}
	end := strings.IndexFunc(v[strings.IndexByte(v, '!')+1:], func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(v)
	} else {
		end += strings.IndexByte(v, '!') + 1
		if v[end-1] == '.' { // of ".post1" or ".dev1"
			end--
		}
	}
	release := v[:end]
	for strings.HasSuffix(release, ".0") {
		release = release[:len(release)-2]
	}
	if len(release) == end {
		return v
	}
	return release + v[end:]
}

// versionParser reads the grammar of PEP 440, appendix B, from a text in lower case and writes the
// normalised spelling.
type versionParser struct {
	rest string
	out  []byte
}

func (p *versionParser) parse() bool {
	p.take("v")
	before := *p
	if p.number() && p.take("!") {
		if string(p.out) == "0" {
			p.out = p.out[:0]
		} else {
			p.out = append(p.out, '!')
		}
	} else {
		*p = versionParser{rest: before.rest}
	}
	if !p.number() {
		return false
	}
	for {
		before := p.rest
		if !p.take(".") || p.rest == "" || !digit(p.rest[0]) {
			p.rest = before
			break
		}
		p.out = append(p.out, '.')
		p.number()
	}
	p.letters([]spelling{{"alpha", "a"}, {"a", "a"}, {"beta", "b"}, {"b", "b"}, {"preview", "rc"}, {"pre", "rc"}, {"rc", "rc"}, {"c", "rc"}})
	if !p.implicitPost() {
		p.letters([]spelling{{"post", ".post"}, {"rev", ".post"}, {"r", ".post"}})
	}
	p.letters([]spelling{{"dev", ".dev"}})
	return p.local()
}

// take consumes a prefix.
func (p *versionParser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// number consumes digits and writes them without leading zeros.
func (p *versionParser) number() bool {
	n := 0
	for n < len(p.rest) && digit(p.rest[n]) {
		n++
	}
	if n == 0 {
		return false
	}
	digits := strings.TrimLeft(p.rest[:n], "0")
	if digits == "" {
		digits = "0"
	}
	p.out, p.rest = append(p.out, digits...), p.rest[n:]
	return true
}

type spelling struct{ from, to string }

// letters consumes [sep] word [sep] [number]; a number that is left out is 0.
func (p *versionParser) letters(words []spelling) {
	rest := p.rest
	if rest != "" && separator(rest[0]) {
		rest = rest[1:]
	}
	for _, w := range words {
		after, ok := strings.CutPrefix(rest, w.from)
		if !ok {
			continue
		}
		p.out = append(p.out, w.to...)
		p.rest = after
		if after != "" && separator(after[0]) { // also when no number follows
			p.rest = after[1:]
		}
		if !p.number() {
			p.out = append(p.out, '0')
		}
		return
	}
}

// implicitPost consumes "-1", which is ".post1".
func (p *versionParser) implicitPost() bool {
	if len(p.rest) < 2 || p.rest[0] != '-' || !digit(p.rest[1]) {
		return false
	}
	p.rest = p.rest[1:]
	p.out = append(p.out, ".post"...)
	return p.number()
}

// local consumes "+local.version".
func (p *versionParser) local() bool {
	if !p.take("+") {
		return true
	}
	p.out = append(p.out, '+')
	for i, part := range strings.Split(strings.NewReplacer("-", ".", "_", ".").Replace(p.rest), ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return r > 127 || !alnum(byte(r)) }) {
			return false
		}
		if i > 0 {
			p.out = append(p.out, '.')
		}
		if trimmed := strings.TrimLeft(part, "0"); strings.Trim(part, "0123456789") == "" {
			part = trimmed
			if part == "" {
				part = "0"
			}
		}
		p.out = append(p.out, part...)
	}
	p.rest = ""
	return true
}
