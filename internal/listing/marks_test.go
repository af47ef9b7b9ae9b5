package listing

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// naive is mark in its plainest form, one byte at a time.
func naive(doc string) (marks []byte, nonASCII bool) {
	marks = make([]byte, len(doc)/8)
	for i := range len(marks) * 8 {
		if c := doc[i]; c == '"' || c == '\\' || c < ' ' {
			marks[i/8] |= 1 << (i % 8)
		}
		nonASCII = nonASCII || doc[i] >= utf8.RuneSelf
	}
	return marks, nonASCII
}

func checkMarks(t *testing.T, doc string) {
	t.Helper()
	doc = doc[:len(doc)/block*block]
	want, wantNonASCII := naive(doc)
	for name, impl := range map[string]func([]byte, string) bool{
		"best for this processor": mark, "portable": func(marks []byte, doc string) bool { return markWords(marks, []byte(doc)) },
	} {
		got := make([]byte, len(want)+8)
		got[len(want)] = 0xa5
		nonASCII := impl(got[:len(want)], doc)
		if string(got[:len(want)]) != string(want) || nonASCII != wantNonASCII || got[len(want)] != 0xa5 {
			t.Fatalf("%s: %x, non-ASCII %v; want %x, %v\n%q", name, got, nonASCII, want, wantNonASCII, doc)
		}
	}
}

// Every byte value is recognised at every place of a block, whatever its neighbours.
func TestMarksOfEveryByte(t *testing.T) {
	for _, around := range []string{"a", `"`, "\x80", "\x1f"} {
		doc := []byte(strings.Repeat(around, 3*block))
		for at := range doc {
			for c := range 256 {
				doc[at] = byte(c)
				checkMarks(t, string(doc))
			}
			doc[at] = around[0]
		}
	}
}

func TestMarksOfManySizes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for blocks := range 40 {
		doc := make([]byte, blocks*block)
		for i := range doc {
			doc[i] = byte(random.Uint32())
		}
		checkMarks(t, string(doc))
		checkMarks(t, strings.Repeat("plain text ", blocks*6)) // in ASCII, without a mark
	}
}

func FuzzMarks(f *testing.F) {
	f.Add(strings.Repeat(`{"a":"b\\","c":`+"\t\"\u00e9\"}", 20))
	f.Fuzz(checkMarks)
}

// around are lengths near the end of the first window and the second.
func around(yield func(int) bool) {
	for _, middle := range []int{window, 2 * window} {
		for n := middle - block - 2; n < middle+block+2; n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// The end of a string, escapes and control characters are found wherever the window ends.
func TestStringsAcrossWindows(t *testing.T) {
	for n := range around {
		pad := strings.Repeat("x", n)
		for text, want := range map[string]bool{
			`["` + pad + `","b"]`: true, `["` + pad + `\"","b"]`: true, `["` + pad + `\u00e9","b"]`: true, `{"` + pad + `":"b"}`: true, `["` + pad + `é😀","` + pad + `"]`: true,
			`["` + pad + `\x","b"]`: false, `["` + pad + "\n" + `","b"]`: false, `["` + pad: false, `["` + pad + `\`: false, `["` + pad + `\"`: false, `["` + pad + `" "b"]`: false,
		} {
			if err := skip(text); (err == nil) != want {
				t.Fatalf("%.10q…%q: %v, want valid = %v", text, text[max(0, len(text)-12):], err, want)
			}
		}
	}
}

// Invalid UTF-8 is found and located wherever the window ends; a valid character passes.
func TestUTF8AcrossWindows(t *testing.T) {
	for n := range around {
		pad := strings.Repeat("x", n)
		for _, character := range []string{"é", "€", "😀"} {
			text := `["` + pad + character + `","é"]`
			if err := skip(text); err != nil {
				t.Fatalf("%q after %d: %v", character, n, err)
			}
			for cut := 1; cut < len(character); cut++ {
				for what, broken := range map[string]string{"start": character[:cut], "end": character[cut:], "end of another": "é" + character[cut:]} {
					var e *Error
					err := skip(`["` + pad + broken + `","é"]`)
					if !errors.As(err, &e) || e.Reason != "invalid UTF-8" || e.Offset < n+2 || e.Offset > n+2+len("é") {
						t.Fatalf("%s of %q after %d: %v", what, character, n, err)
					}
				}
			}
		}
	}
}

// A string of nothing but escapes takes time in proportion to its length, in each window.
func TestManyWindowsOfEscapes(t *testing.T) {
	for _, escape := range []string{`\"`, `\\`, `\u0041`, `\ud83d\ude00`} {
		text := `["` + strings.Repeat(escape, 5*window) + `"]`
		if err := skip(text); err != nil {
			t.Fatal(err)
		}
		if skip(text[:len(text)-2]) == nil || skip(strings.Replace(text, `\`, `\x`, 1)) == nil {
			t.Fatal("a broken one passes")
		}
	}
}

func BenchmarkMarks(b *testing.B) {
	doc := strings.Repeat(`{"name":"value of it","version":"1.2.3"}`, window/40+1)[:window]
	marks := make([]byte, window/8)
	for name, impl := range map[string]func(){"best": func() { mark(marks, doc) }, "portable": func() { markWords(marks, []byte(doc)) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(window)
			for b.Loop() {
				impl()
			}
		})
	}
}
