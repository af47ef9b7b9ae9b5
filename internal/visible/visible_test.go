package visible_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ecluse-gate/ecluse/internal/visible"
)

// What a person may take for what it is stands as it is; the rest is quoted and escaped.
func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"guide.txt": "", "sub/more than one.md": "", "a+b@c(1).txt": "", "Übersicht für Löwen.pdf": "", "résumé.txt": "",
		"документ.txt": "", "Отчёт 2026.pdf": "", "έγγραφο.txt": "", "報告書-v2.pdf": "", "レポートABC.txt": "", "보고서.hwp": "", "กำหนดการ.txt": "",
		"हिन्दी.txt": "", "ملف.txt": "", "User’s guide — final®.pdf": "",

		"":                   `""`,
		" a.txt":             `" a.txt"`,
		"a.txt ":             `"a.txt "`,
		"a.txt  confirmed":   `"a.txt  confirmed"`,
		`say "hi".txt`:       `"say \"hi\".txt"`,
		`back\slash`:         `"back\\slash"`,
		"two\nlines":         `"two\nlines"`,
		"a\ttab":             `"a\ttab"`,
		"clear\x1b[2J":       `"clear\x1b[2J"`,
		"del\x7f":            `"del\x7f"`,
		"gpj.\u202eexe.txt":  `"gpj.\u202eexe.txt"`,
		"\u2066x\u2069":      `"\u2066x\u2069"`,
		"a\u200bb":           `"a\u200bb"`,
		"a\u200db":           `"a\u200db"`,
		"a\ufeffb":           `"a\ufeffb"`,
		"soft\u00adhyphen":   `"soft\u00adhyphen"`,
		"a\u00a0b":           `"a\u00a0b"`,
		"a\u3000b":           `"a\u3000b"`,
		"x\ufe0f":            `"x\ufe0f"`,
		"a\u3164b":           `"a\u3164b"`,
		"a\u115fb":           `"a\u115fb"`,
		"a\u2800b":           `"a\u2800b"`,
		"tag\U000e0041":      `"tag\U000e0041"`,
		"line\u2028sep":      `"line\u2028sep"`,
		"not\xffutf8":        `"not\xffutf8"`,
		"private\ue000":      `"private\ue000"`,
		"p\u0430ypal.txt":    `"p\u0430ypal.txt"`,
		"\u0441\u043e\u0440": `"\u0441\u043e\u0440"`,
		"\u0391\u0392":       `"\u0391\u0392"`,
		"p\u03bfp":           `"p\u03bfp"`,
		"\u0436\u03b6":       `"\u0436\u03b6"`,
		"\uff41\uff42.txt":   `"\uff41\uff42.txt"`,
		"\U0001d41a.txt":     `"\U0001d41a.txt"`,
		"\ufb01le":           `"\ufb01le"`,
		"\u212aelvin":        `"\u212aelvin"`,
		"a\u2044b":           `"a\u2044b"`,
		"a\u2215b":           `"a\u2215b"`,
		"a\uff0fb":           `"a\uff0fb"`,
		"a\u2024txt":         `"a\u2024txt"`,
		"a\u2011b":           `"a\u2011b"`,
		"a\u2212b":           `"a\u2212b"`,
		"f\u0131le":          `"f\u0131le"`,
		"cafe\u0301.txt":     `"cafe\u0301.txt"`,
		"o\u0338\u0301.txt":  `"o\u0338\u0301.txt"`,
		"v\u0967.txt":        `"v\u0967.txt"`,
		"\u0660\u0661.txt":   `"\u0660\u0661.txt"`,
	} {
		if want == "" {
			want = name
		}
		if got := visible.Name(name); got != want {
			t.Errorf("%+q is shown as %s, want %s", name, got, want)
		}
	}
	if got := visible.Quote("manuals"); got != `"manuals"` {
		t.Error(got)
	}
}

// A message keeps its lines and its quotes.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"two\nlines\tand \"quotes\" \\ too": "two\nlines\tand \"quotes\" \\ too",
		"bad \u202e name \x1b[2J":           `bad \u202e name \x1b[2J`,
		"cut \xc3":                          `cut \xc3`,
	} {
		if got := visible.Text(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// FuzzJSON: a document says the same to a program, and nothing in it is hidden from a person. A
// name is shown as one line of UTF-8.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"guide.txt", "gpj.\u202eexe", "p\u0430ypal", "\U000e0041", "\xff", "a\\u202e", "\n\u0301"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		document, err := json.Marshal(map[string]any{name: []string{name}})
		if err != nil {
			t.Skip()
		}
		shown := visible.JSON(document)
		var before, after any
		if json.Unmarshal(document, &before) != nil || json.Unmarshal(shown, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", document, shown)
		}
		if strings.ContainsAny(string(shown), "\u202e\u200b\u2066\x7f") {
			t.Fatalf("%q became %q", document, shown)
		}
		one := visible.Name(name)
		if !utf8.ValidString(one) || strings.ContainsAny(one, "\n\r\u202e\u200b\u2066\x1b") {
			t.Fatalf("%q is shown as %q", name, one)
		}
	})
}
