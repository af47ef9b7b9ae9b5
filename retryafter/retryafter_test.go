package retryafter_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// noon is the receipt time of most tests, a Tuesday.
var noon = time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)

func parse(values ...string) retryafter.Report { return retryafter.Parse(values, noon) }

func wantSeconds(t *testing.T, r retryafter.Report, want int64) {
	t.Helper()
	if got, ok := r.DelaySeconds(); !ok || got != want || r.Kind != retryafter.KindSeconds {
		t.Errorf("%v %d %v, want %d seconds", r.Kind, got, ok, want)
	}
}

func wantInvalid(t *testing.T, values ...string) {
	t.Helper()
	r := parse(values...)
	if r.Kind != retryafter.KindInvalid || r.Form != retryafter.FormNone {
		t.Errorf("%q: %v %v, want invalid", values, r.Kind, r.Form)
	}
	if d, ok := r.Delay(); ok || d != 0 {
		t.Errorf("%q: an invalid field has a delay of %v", values, d)
	}
	if _, ok := r.NotBefore(); ok {
		t.Errorf("%q: an invalid field has a not-before", values)
	}
}

func wantDate(t *testing.T, r retryafter.Report, form retryafter.Form, want time.Time) {
	t.Helper()
	if r.Kind != retryafter.KindDate || r.Form != form || !r.Date.Equal(want) {
		t.Errorf("%v %v %v, want %v %v", r.Kind, r.Form, r.Date, form, want)
	}
}

// tc-001 tc-002 tc-005 tc-006 tc-007 C69: a legal delay too long for a Duration of nanoseconds is
// neither negative nor short.
func TestLongDelaysSaturate(t *testing.T) {
	for _, test := range []struct {
		value string
		want  int64
	}{
		{"9223372036", 9223372036},
		{"9223372037", 9223372037}, // the first that does not fit a Duration
		{"9999999999", 9999999999},
		{"18446744073", 18446744073}, // wraps to -0.7 s when multiplied
		{"18446744074", 18446744074}, // wraps to +0.3 s when multiplied
		{"9223372036854775807", math.MaxInt64},
	} {
		r := parse(test.value)
		wantSeconds(t, r, test.want)
		d, ok := r.Delay()
		switch {
		case !ok:
			t.Errorf("%s: no delay", test.value)
		case test.value == "9223372036" && d != 9223372036*time.Second:
			t.Errorf("%s: %v is not exact", test.value, d)
		case test.value != "9223372036" && d != math.MaxInt64:
			t.Errorf("%s: %v, want the largest Duration", test.value, d)
		}
		if r.Notes != 0 {
			t.Errorf("%s: notes %v", test.value, r.Notes.Strings())
		}
		if c := r.Canonical(); c != (retryafter.Canonical{Kind: "overlong"}) {
			t.Errorf("%s: canonical %v", test.value, c)
		}
	}
}

// tc-001: beyond an int64 there is no delay in seconds, and the Duration is endless; never zero.
func TestUnrepresentableSeconds(t *testing.T) {
	for _, value := range []string{"9223372036854775808", "18446744073709551616", "99999999999999999999", strings.Repeat("9", 128)} {
		r := parse(value)
		if r.Kind != retryafter.KindSeconds || !r.Notes.Has(retryafter.NoteUnrepresentable) || r.Notes.Has(retryafter.NoteOversized) {
			t.Errorf("%s: %v %v", value, r.Kind, r.Notes.Strings())
		}
		if n, ok := r.DelaySeconds(); ok || n != 0 {
			t.Errorf("%s: delay %d %v", value, n, ok)
		}
		if d, ok := r.Delay(); !ok || d != math.MaxInt64 {
			t.Errorf("%s: %v %v, want the largest Duration", value, d, ok)
		}
		if at, ok := r.NotBefore(); ok {
			t.Errorf("%s: not before %v", value, at)
		}
	}
}

// tc-008 tc-010 tc-011 tc-013 tc-015 tc-016 C72: numbers that are not plain ASCII digits are
// invalid.
func TestNotPlainDigits(t *testing.T) {
	for _, value := range []string{
		"-1", "-5", "-3", "+3", "-0", "+5", "1.5", "0.493", "1e3", "0x1", "5s", "1m30", "5 10", "", " ", "\t", "\u00b2", "1\u00b2", "\uff15",
		"\u0661", "5\u00a0", "\u00a05", "5\r\n", "\n5", "5\x00", "5\v", "1_0",
	} {
		wantInvalid(t, value)
	}
}

// tc-008: absent values never panic.
func TestAbsentValues(t *testing.T) {
	for _, values := range [][]string{nil, {}} {
		r := retryafter.Parse(values, noon)
		if r.Kind != retryafter.KindMissing || r.Notes != 0 || !r.Received.Equal(noon) {
			t.Errorf("%v: %+v", values, r)
		}
		if _, ok := r.Delay(); ok {
			t.Error("a missing field has a delay")
		}
	}
	if new(retryafter.Report).Kind != retryafter.KindMissing {
		t.Error("the zero Report is not a missing field")
	}
}

// tc-017 R14 S1 S6: repeats and lists are diagnosed; neither value wins, and equal values are no
// better.
func TestDuplicates(t *testing.T) {
	for _, values := range [][]string{
		{"5", "10"},
		{"10", "5"},
		{"5", "5"},
		{"5", ""},
		{"", "5"},
		{"junk", "5"},
		{strings.Repeat("9", 500), "5"},
		{"5, 10"},
		{"5,5"},
		{"5,"},
		{",5"},
		{","},
		{"5, junk"},
		{"Tue, 01 Dec 2026 12:02:00 GMT, Tue, 01 Dec 2026 12:04:00 GMT"},
		{"Tuesday, 01-Dec-26 12:02:00 GMT, 120"},
		{"120, Tue Dec  1 12:02:00 2026"},
	} {
		wantInvalid(t, values...)
		if r := parse(values...); !r.Notes.Has(retryafter.NoteDuplicate) {
			t.Errorf("%q: notes %v, want duplicate", values, r.Notes.Strings())
		}
	}
	for _, value := range []string{"tue, 01 dec 2026 12:02:00 gmt", "Tue, 1 Dec 2026 12:02:00 GMT", "Xyz, 01 Dec 2026 12:02:00 GMT", "Tue, 01 Dec 2026 12:02:00,500 GMT", "a, b"} {
		wantInvalid(t, value)
		if r := parse(value); r.Notes != 0 {
			t.Errorf("%q: notes %v, want none: it is no list of values", value, r.Notes.Strings())
		}
	}
}

// tc-020 tc-021 tc-022 tc-028 C73: each of the three forms is a date, resolved against the receipt
// time.
func TestDateForms(t *testing.T) {
	want := time.Date(2026, time.December, 1, 12, 0, 5, 0, time.UTC)
	for value, form := range map[string]retryafter.Form{
		"Tue, 01 Dec 2026 12:00:05 GMT":   retryafter.FormIMFFixdate,
		"Tuesday, 01-Dec-26 12:00:05 GMT": retryafter.FormRFC850,
		"Tue Dec  1 12:00:05 2026":        retryafter.FormAsctime,
		"Tue Dec 01 12:00:05 2026":        retryafter.FormAsctime,
	} {
		r := parse(value)
		wantDate(t, r, form, want)
		if d, ok := r.Delay(); !ok || d != 5*time.Second {
			t.Errorf("%s: delay %v %v, want 5 s", value, d, ok)
		}
		if at, ok := r.NotBefore(); !ok || !at.Equal(want) || at.Location() != time.UTC {
			t.Errorf("%s: not before %v %v", value, at, ok)
		}
	}
	wantDate(t, parse("Fri, 31 Dec 2027 23:59:59 GMT"), retryafter.FormIMFFixdate, time.Date(2027, time.December, 31, 23, 59, 59, 0, time.UTC))
}

// tc-022 tc-008 C71: a past date is a date, with a delay of zero.
func TestPastDate(t *testing.T) {
	r := parse("Wed, 21 Oct 2015 07:28:00 GMT")
	wantDate(t, r, retryafter.FormIMFFixdate, time.Date(2015, time.October, 21, 7, 28, 0, 0, time.UTC))
	if n, ok := r.DelaySeconds(); !ok || n != 0 {
		t.Errorf("delay %d %v", n, ok)
	}
	if d, ok := r.Delay(); !ok || d != 0 {
		t.Errorf("delay %v %v", d, ok)
	}
}

// tc-023: a two-digit year is not of the last century when the present one is meant.
func TestTwoDigitYearOfThePresent(t *testing.T) {
	received := time.Date(2026, time.June, 21, 7, 27, 0, 0, time.UTC)
	r := retryafter.Parse([]string{"Sunday, 21-Jun-26 07:28:00 GMT"}, received)
	wantDate(t, r, retryafter.FormRFC850, time.Date(2026, time.June, 21, 7, 28, 0, 0, time.UTC))
	if r.Notes != 0 {
		t.Errorf("notes %v", r.Notes.Strings())
	}
}

// tc-025 R15: what remains of a second counts as a second where whole seconds are asked for, and
// exactly where they are not.
func TestRemainderOfASecond(t *testing.T) {
	received := noon.Add(4700 * time.Millisecond)
	r := retryafter.Parse([]string{"Tue, 01 Dec 2026 12:00:05 GMT"}, received)
	if n, ok := r.DelaySeconds(); !ok || n != 1 {
		t.Errorf("delay %d %v, want 1", n, ok)
	}
	if d, ok := r.Delay(); !ok || d != 300*time.Millisecond {
		t.Errorf("delay %v %v, want 300ms", d, ok)
	}
}

// tc-026: seconds are seconds.
func TestUnit(t *testing.T) {
	r := parse("30")
	wantSeconds(t, r, 30)
	if d, ok := r.Delay(); !ok || d != 30*time.Second {
		t.Errorf("delay %v %v", d, ok)
	}
	if at, ok := r.NotBefore(); !ok || !at.Equal(noon.Add(30*time.Second)) {
		t.Errorf("not before %v %v", at, ok)
	}
}

// The receipt time's own zone and its monotonic reading have no part in it.
func TestReceiptZone(t *testing.T) {
	zone := time.FixedZone("", 9*3600)
	r := retryafter.Parse([]string{"120"}, noon.In(zone))
	if at, ok := r.NotBefore(); !ok || at != noon.Add(2*time.Minute) {
		t.Errorf("not before %v %v", at, ok)
	}
}

// The last second of the year 9999 can be written in RFC 3339; the next cannot, so there is no
// not-before.
func TestNotBeforeEndsWithTheYear9999(t *testing.T) {
	left := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).Unix() - noon.Unix()
	r := retryafter.Report{Kind: retryafter.KindSeconds, Form: retryafter.FormDelaySeconds, Seconds: left, Received: noon.Add(time.Millisecond)}
	at, ok := r.NotBefore()
	if !ok || at.Year() != 9999 {
		t.Fatalf("not before %v %v", at, ok)
	}
	if _, err := json.Marshal(at); err != nil {
		t.Fatal(err)
	}
	r.Seconds++
	if at, ok = r.NotBefore(); ok {
		t.Fatalf("not before %v", at)
	}
	leap := parse("Fri, 31 Dec 9999 23:59:60 GMT")
	if at, ok = leap.NotBefore(); ok || leap.Date.Year() != 10000 {
		t.Fatalf("not before %v, date %v", at, leap.Date)
	}
}

func TestNotes(t *testing.T) {
	all := retryafter.NoteDuplicate | retryafter.NoteUnrepresentable | retryafter.NoteOversized | retryafter.NoteWeekday
	if got, want := all.Strings(), []string{"duplicate", "unrepresentable", "oversized", "weekday"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := retryafter.Notes(0).Strings(); got != nil {
		t.Errorf("no notes are %v", got)
	}
	if !all.Has(retryafter.NoteWeekday) || retryafter.NoteWeekday.Has(all) {
		t.Error("Has")
	}
	for _, value := range []string{"Mon, 01 Dec 2026 12:02:00 GMT", "Monday, 01-Dec-26 12:02:00 GMT", "Mon Dec  1 12:02:00 2026", "Wed, 01 Dec 2026 23:59:60 GMT"} {
		if r := parse(value); r.Kind != retryafter.KindDate || r.Notes != retryafter.NoteWeekday {
			t.Errorf("%s: %v %v", value, r.Kind, r.Notes.Strings())
		}
	}
	if r := parse("Tue, 01 Dec 2026 23:59:60 GMT"); r.Notes != 0 {
		t.Errorf("the day name belongs to the date as written, not to the instant after a leap second: %v", r.Notes.Strings())
	}
}

func TestNames(t *testing.T) {
	for kind, want := range map[retryafter.Kind]string{retryafter.KindMissing: "missing", retryafter.KindInvalid: "invalid", retryafter.KindSeconds: "seconds", retryafter.KindDate: "date"} {
		if kind.String() != want {
			t.Errorf("%d: %s", kind, kind)
		}
	}
	for form, want := range map[retryafter.Form]string{
		retryafter.FormNone: "", retryafter.FormDelaySeconds: "delay-seconds", retryafter.FormIMFFixdate: "imf-fixdate", retryafter.FormRFC850: "rfc850-date", retryafter.FormAsctime: "asctime-date",
	} {
		if form.String() != want {
			t.Errorf("%d: %s", form, form)
		}
	}
}

// A receipt time at the ends of what a Time can hold gives neither a panic nor a wrapped delay.
func TestExtremeReceiptTimes(t *testing.T) {
	for _, received := range []time.Time{{}, time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(-1<<62, 1), time.Unix(1<<62, 1)} {
		for _, value := range []string{"5", "9223372036854775807", "Tue, 01 Dec 2026 12:02:00 GMT", "Tuesday, 01-Dec-26 12:02:00 GMT"} {
			r := retryafter.Parse([]string{value}, received)
			if n, ok := r.DelaySeconds(); n < 0 || r.Kind == retryafter.KindSeconds && !ok {
				t.Errorf("%s at %d: %d", value, received.Unix(), n)
			}
			if d, _ := r.Delay(); d < 0 {
				t.Errorf("%s at %d: %v", value, received.Unix(), d)
			}
			r.Canonical()
			r.Timing()
			r.NotBefore()
		}
	}
}

// The digits path allocates nothing, nor do the dates.
func TestAllocations(t *testing.T) {
	for _, values := range [][]string{{"120"}, {" 120\t"}, {"99999999999999999999"}, {"Tue, 01 Dec 2026 12:02:00 GMT"}, {"Tuesday, 01-Dec-26 12:02:00 GMT"}, {"Tue Dec  1 12:02:00 2026"}, {"soon"}, nil} {
		var total int64
		if n := testing.AllocsPerRun(200, func() {
			r := retryafter.Parse(values, noon)
			seconds, _ := r.DelaySeconds()
			d, _ := r.Delay()
			total += seconds + int64(d)
		}); n != 0 {
			t.Errorf("%q: %v allocations", values, n)
		}
	}
}

func BenchmarkParseSeconds(b *testing.B) {
	values := []string{"120"}
	b.ReportAllocs()
	for b.Loop() {
		retryafter.Parse(values, noon)
	}
}

func BenchmarkParseDate(b *testing.B) {
	for name, values := range map[string][]string{"imf-fixdate": {"Tue, 01 Dec 2026 12:02:00 GMT"}, "rfc850-date": {"Tuesday, 01-Dec-26 12:02:00 GMT"}, "asctime-date": {"Tue Dec  1 12:02:00 2026"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				retryafter.Parse(values, noon)
			}
		})
	}
}
