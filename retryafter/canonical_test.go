package retryafter_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// seconds31 is one second more than a canonical pair can hold.
const seconds31 = "31"

func wantCanonical(t *testing.T, kind string, value int64, header ...string) {
	t.Helper()
	if got, want := parse(header...).Canonical(), (retryafter.Canonical{Kind: kind, Value: value}); got != want {
		t.Errorf("%.60q: %v, want %v", header, got, want)
	}
}

// S1: exactly one field is usable; two are invalid, also when they are equal. (The name's case is
// the business of whoever holds the header.)
func TestS1OneField(t *testing.T) {
	wantCanonical(t, "seconds", 5, "5")
	wantCanonical(t, "invalid", 0, "5", "5")
	wantCanonical(t, "invalid", 0, "5", "6", "7")
}

// S2: no field is missing. (A value that is not text cannot reach a Go string.)
func TestS2Missing(t *testing.T) { wantCanonical(t, "missing", 0) }

// S3: the checks come in the order count, length, ASCII, trim, digits, date.
func TestS3OrderOfChecks(t *testing.T) {
	long := strings.Repeat("0", 127)
	wantCanonical(t, "seconds", 5, long+"5")      // 128 exactly
	wantCanonical(t, "overlong", 0, long+"05")    // 129
	wantCanonical(t, "overlong", 0, " "+long+"5") // before trimming
	wantCanonical(t, "invalid", 0, long+"05", long+"05")
	wantCanonical(t, "invalid", 0, strings.Repeat("x", 128))
	wantCanonical(t, "overlong", 0, strings.Repeat("x", 129))
	wantCanonical(t, "overlong", 0, strings.Repeat("5, ", 50))
	date := "Tue, 01 Dec 2026 12:02:00 GMT"
	wantCanonical(t, "date", noon.Unix()+120, date+strings.Repeat(" ", 128-len(date)))
	wantCanonical(t, "overlong", 0, date+strings.Repeat(" ", 129-len(date)))
	wantCanonical(t, "invalid", 0, strings.Repeat("é", 128)) // characters, not bytes
	wantCanonical(t, "overlong", 0, strings.Repeat("é", 129))
	wantCanonical(t, "invalid", 0, strings.Repeat("\xe9", 128)) // Latin-1: one byte, one character
	wantCanonical(t, "overlong", 0, strings.Repeat("\xe9", 129))
	if r := parse(long + "05"); r.Kind != retryafter.KindSeconds || r.Seconds != 5 || r.Notes != retryafter.NoteOversized {
		t.Errorf("the facts are %v %d %v", r.Kind, r.Seconds, r.Notes.Strings())
	}
}

// S4: only spaces and tabs around the value are trimmed.
func TestS4Trim(t *testing.T) {
	wantCanonical(t, "seconds", 5, " \t5\t ")
	for _, value := range []string{"5\n", "5\r", "\v5", "\f5", "5\u00a0", "5 5", "5\t5"} {
		wantCanonical(t, "invalid", 0, value)
	}
}

// S5: digits are seconds up to 30, and overlong from 31.
func TestS5Digits(t *testing.T) {
	wantCanonical(t, "seconds", 0, "0")
	wantCanonical(t, "seconds", 30, "30")
	wantCanonical(t, "seconds", 30, "000030")
	wantCanonical(t, "overlong", 0, seconds31)
	wantCanonical(t, "overlong", 0, "99999999999999999999999")
}

// S6: what looks like a number but is none.
func TestS6NoNumbers(t *testing.T) {
	for _, value := range []string{"+5", "-1", "1.5", "5s", "5, 10", "", "0x1"} {
		wantCanonical(t, "invalid", 0, value)
	}
}

// S7: an IMF-fixdate is a date in Unix time.
func TestS7IMFFixdate(t *testing.T) {
	wantCanonical(t, "date", noon.Unix()+120, "Tue, 01 Dec 2026 12:02:00 GMT")
	wantCanonical(t, "invalid", 0, "tue, 01 Dec 2026 12:02:00 GMT")
	wantCanonical(t, "invalid", 0, "Tuesday, 01 Dec 2026 12:02:00 GMT")
}

// S8: an RFC 850 date has a kind of its own.
func TestS8RFC850(t *testing.T) {
	wantCanonical(t, "date-rfc850", noon.Unix()+120, "Tuesday, 01-Dec-26 12:02:00 GMT")
	wantCanonical(t, "date-rfc850", time.Date(2026, time.December, 2, 0, 0, 0, 0, time.UTC).Unix(), "Wednesday, 02-Dec-26 00:00:00 GMT")
	wantCanonical(t, "invalid", 0, "Tue, 01-Dec-26 12:02:00 GMT")
}

// S9: an asctime date pads its day with a space or a zero, and has no zone.
func TestS9Asctime(t *testing.T) {
	wantCanonical(t, "date", noon.Unix()+120, "Tue Dec  1 12:02:00 2026")
	wantCanonical(t, "date", noon.Unix()+120, "Tue Dec 01 12:02:00 2026")
	wantCanonical(t, "invalid", 0, "Tue Dec 1 12:02:00 2026")
	wantCanonical(t, "invalid", 0, "Tue Dec  1 12:02:00 2026 GMT")
	wantCanonical(t, "invalid", 0, "Tue Dec    12:02:00 2026")
}

// S10: the zone is GMT and nothing else; the day has two digits.
func TestS10Zone(t *testing.T) {
	for _, value := range []string{"Tue, 01 Dec 2026 12:02:00 UTC", "Tue, 01 Dec 2026 12:02:00 +0000", "Tue, 01 Dec 2026 12:02:00 gmt", "Tue, 01 Dec 2026 12:02:00", "Tue, 1 Dec 2026 12:02:00 GMT", "Tue, 01 Dec 2026 12:02:00 GXT"} {
		wantCanonical(t, "invalid", 0, value)
	}
}

// S11: fields that cannot be.
func TestS11ImpossibleFields(t *testing.T) {
	for _, value := range []string{
		"Wed, 31 Feb 2027 12:02:00 GMT", "Mon, 29 Feb 2027 12:02:00 GMT", "Tue, 00 Dec 2026 12:02:00 GMT", "Tue, 01 Dec 2026 24:00:00 GMT", "Tue, 01 Dec 2026 12:60:00 GMT", "Tue, 01 Dec 2026 12:02:61 GMT",
		"Tue, 01 Foo 2026 12:02:00 GMT", "Tue, 01 Dec 2026 12-02-00 GMT", "Tue, 01 Dec 2026 1::02:00 GMT", "Friday, 31-Apr-27 12:00:00 GMT", "Tuesday, 30-Feb-27 12:00:00 GMT",
	} {
		wantCanonical(t, "invalid", 0, value)
	}
}

// S12: a wrong weekday is noted, an unreal one invalid; years have four digits; second 60 is the
// following instant.
func TestS12Strictness(t *testing.T) {
	wantCanonical(t, "date", noon.Unix()+120, "Mon, 01 Dec 2026 12:02:00 GMT")
	wantCanonical(t, "invalid", 0, "Mox, 01 Dec 2026 12:02:00 GMT")
	wantCanonical(t, "invalid", 0, "Mon, 01 Dec 999 12:02:00 GMT")
	wantCanonical(t, "date", time.Date(1000, time.December, 1, 12, 2, 0, 0, time.UTC).Unix(), "Mon, 01 Dec 1000 12:02:00 GMT")
	wantCanonical(t, "date", time.Date(2026, time.December, 2, 0, 0, 0, 0, time.UTC).Unix(), "Tue, 01 Dec 2026 23:59:60 GMT")
}

// S12, S15: a year before 1000 is written with four digits like any other, and is past: no fallback
// stands in for it. What no record can hold, the year 0, is recorded as the first second of the
// year 1.
func TestYearsBefore1000(t *testing.T) {
	first := time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"Sun, 01 Dec 0999 12:02:00 GMT": time.Date(999, time.December, 1, 12, 2, 0, 0, time.UTC),
		"Mon, 01 Jan 0001 00:00:00 GMT": first, // what a server prints whose time was never set
		"Mon Jan  1 00:00:00 0001":      first,
		"Sat, 01 Jan 0000 00:00:00 GMT": time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC),
		"Tue Feb 29 00:00:00 0000":      time.Date(0, time.February, 29, 0, 0, 0, 0, time.UTC),
	} {
		r := parse(value)
		if delay, ok := r.Delay(); r.Kind != retryafter.KindDate || !r.Date.Equal(want) || !ok || delay != 0 || r.Notes != 0 {
			t.Errorf("%s: %+v", value, r)
		}
		if s, ok := r.DelaySeconds(); s != 0 || !ok {
			t.Errorf("%s: %d seconds, %v", value, s, ok)
		}
		recorded := max(want.Unix(), first.Unix())
		wantCanonical(t, "date", recorded, value)
		if timing := r.Timing(); timing.NotBeforeUnix == nil || *timing.NotBeforeUnix != recorded {
			t.Errorf("%s: timing %+v", value, timing)
		}
	}
	wantInvalid(t, "Tue, 29 Feb 0001 00:00:00 GMT")
}

// S13: two-digit years are at most 50 years ahead of the receipt, to the second, and across the end
// of a century.
func TestS13TwoDigitYears(t *testing.T) {
	at := func(year int, month time.Month, day, hour, minute, second int) time.Time {
		return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	}
	for _, test := range []struct {
		received time.Time
		value    string
		want     time.Time
	}{
		{noon, "Tuesday, 01-Dec-76 12:00:00 GMT", at(2076, 12, 1, 12, 0, 0)},
		{noon, "Tuesday, 01-Dec-76 12:00:01 GMT", at(1976, 12, 1, 12, 0, 1)},
		{noon, "Thursday, 01-Jan-77 00:00:00 GMT", at(1977, 1, 1, 0, 0, 0)},
		{noon, "Thursday, 01-Jan-70 00:00:00 GMT", at(2070, 1, 1, 0, 0, 0)},
		{at(1999, 12, 31, 23, 59, 30), "Saturday, 01-Jan-00 00:00:00 GMT", at(2000, 1, 1, 0, 0, 0)},
		{at(2000, 1, 1, 0, 0, 10), "Friday, 31-Dec-99 23:59:59 GMT", at(1999, 12, 31, 23, 59, 59)},
		{at(2060, 6, 1, 0, 0, 0), "Monday, 01-Jan-10 00:00:00 GMT", at(2110, 1, 1, 0, 0, 0)},
		{at(2060, 6, 1, 0, 0, 0), "Monday, 01-Jan-11 00:00:00 GMT", at(2011, 1, 1, 0, 0, 0)},
		{noon.In(time.FixedZone("", -14*3600)), "Tuesday, 01-Dec-76 12:00:00 GMT", at(2076, 12, 1, 12, 0, 0)},
	} {
		wantDate(t, retryafter.Parse([]string{test.value}, test.received), retryafter.FormRFC850, test.want)
	}
}

// S14: a 29th of February that the resolved year does not have, or a date outside the years 1 to
// 9999, has no deadline.
func TestS14NoDeadline(t *testing.T) {
	for _, test := range []struct {
		received time.Time
		value    string
	}{
		{noon, "Monday, 29-Feb-27 12:00:00 GMT"},
		// 2100 is no leap year; 2000, which is, is not the latest
		{time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC), "Monday, 29-Feb-00 12:00:00 GMT"},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "Monday, 01-Jan-20 12:00:00 GMT"},
		{noon, "Fri, 31 Dec 9999 23:59:60 GMT"},
	} {
		r := retryafter.Parse([]string{test.value}, test.received)
		if c := r.Canonical(); c != (retryafter.Canonical{Kind: "overlong"}) {
			t.Errorf("%s: canonical %v", test.value, c)
		}
		if timing := r.Timing(); timing.NotBeforeUnix != nil || timing.ServerDelaySeconds != nil || !timing.ReceivedKnown {
			t.Errorf("%s: timing %+v", test.value, timing)
		}
		if at, ok := r.NotBefore(); ok {
			t.Errorf("%s: not before %v", test.value, at)
		}
	}
	wantInvalid(t, "Monday, 29-Feb-27 12:00:00 GMT")
}

// S15: a past date keeps its instant and is a wait of zero; so is the present one.
func TestS15PastDate(t *testing.T) {
	wantCanonical(t, "date", noon.Unix()-1, "Tue, 01 Dec 2026 11:59:59 GMT")
	for _, value := range []string{"Tue, 01 Dec 2026 11:59:59 GMT", "Tue, 01 Dec 2026 12:00:00 GMT"} {
		if n, ok := parse(value).DelaySeconds(); !ok || n != 0 {
			t.Errorf("%s: %d %v", value, n, ok)
		}
	}
}

// timing is a Timing without pointers; -1 is none.
func timing(r retryafter.Report) [3]int64 {
	t := r.Timing()
	out := [3]int64{t.ReceivedUnix, -1, -1}
	if t.NotBeforeUnix != nil {
		out[1] = *t.NotBeforeUnix
	}
	if t.ServerDelaySeconds != nil {
		out[2] = *t.ServerDelaySeconds
	}
	return out
}

// S16 S18: a missing or invalid field is recorded as one second.
func TestS16OneSecond(t *testing.T) {
	for _, r := range []retryafter.Report{parse(), parse("soon"), parse("5", "5")} {
		if got, want := timing(r), [3]int64{noon.Unix(), noon.Unix() + 1, -1}; got != want {
			t.Errorf("%v: %v, want %v", r.Kind, got, want)
		}
	}
}

// S17: overlong is neither zero nor short: it has no value that could be slept for.
func TestS17Overlong(t *testing.T) {
	for _, value := range []string{seconds31, strings.Repeat("0", 129), strings.Repeat("9", 400), strings.Repeat("x", 129)} {
		wantCanonical(t, "overlong", 0, value)
	}
}

// S18: the timing triple, kind by kind. Receipts round down, not-befores up.
func TestS18Timing(t *testing.T) {
	r := noon.Unix()
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	left := itoa(last.Unix() - r)
	tooMany := itoa(last.Unix() - r + 1)
	for _, test := range []struct {
		value string
		want  [3]int64
	}{
		{"0", [3]int64{r, r, 0}},
		{"30", [3]int64{r, r + 30, 30}},
		{seconds31, [3]int64{r, r + 31, 31}},
		{"60", [3]int64{r, r + 60, 60}},
		{left, [3]int64{r, last.Unix(), last.Unix() - r}},
		{tooMany, [3]int64{r, -1, -1}},
		{"99999999999999999999", [3]int64{r, -1, -1}},
		{strings.Repeat("0", 129), [3]int64{r, -1, -1}},
		{strings.Repeat("x", 129), [3]int64{r, -1, -1}},
		{"Tue, 01 Dec 2026 12:02:00 GMT", [3]int64{r, r + 120, -1}},
		{"Tue, 01 Dec 2026 11:02:00 GMT", [3]int64{r, r - 3480, -1}},
		{"Tuesday, 01-Dec-26 12:02:00 GMT", [3]int64{r, r + 120, -1}},
	} {
		if got := timing(parse(test.value)); got != test.want {
			t.Errorf("%.40s: %v, want %v", test.value, got, test.want)
		}
	}
	late := retryafter.Parse([]string{"5"}, noon.Add(time.Nanosecond))
	if got, want := timing(late), [3]int64{r, r + 6, 5}; got != want {
		t.Errorf("with a fraction: %v, want %v", got, want)
	}
	if got, want := timing(retryafter.Parse(nil, noon.Add(time.Second-1))), [3]int64{r, r + 2, -1}; got != want {
		t.Errorf("with a fraction: %v, want %v", got, want)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// S19: without a valid receipt clock nothing can be resolved.
func TestS19ReceiptClock(t *testing.T) {
	for _, received := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC)} {
		for _, value := range []string{"5", "60", "soon", "Tue, 01 Dec 2026 12:02:00 GMT"} {
			if got := retryafter.Parse([]string{value}, received).Timing(); got != (retryafter.Timing{}) {
				t.Errorf("%s at %v: %+v", value, received, got)
			}
		}
	}
}

// S20: a report, and what is derived from it, holds no text of the field.
func TestS20NoRawText(t *testing.T) {
	for _, value := range []any{retryafter.Report{}, retryafter.Timing{}} {
		for field := range reflect.TypeOf(value).Fields() {
			if field.Type.Kind() == reflect.String {
				t.Errorf("%T.%s could hold text", value, field.Name)
			}
		}
	}
	allowed := []string{"missing", "invalid", "seconds", "date", "date-rfc850", "overlong"}
	for _, v := range readVectors(t) {
		if c := parse(v.Header...).Canonical(); !slices.Contains(allowed, c.Kind) {
			t.Errorf("%s: kind %q", v.ID, c.Kind)
		}
	}
}
