package retryafter

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Parse reads the values of all Retry-After field lines of one response, as in
// http.Header.Values("Retry-After"), received at the given time. No values, nil or empty, is a
// missing field. Parse never fails, never panics and does not retain its arguments' text.
//
// The grammar is RFC 9110's and strict: signs, fractions, units, other digits than ASCII, other
// zones than GMT, wrong case and stray spaces are invalid. Only spaces and tabs around the value
// are dropped (section 5.5).
func Parse(values []string, received time.Time) Report {
	r, value, ok := single(values, received)
	if !ok {
		return r
	}
	if one(&r, value); r.Kind == KindInvalid && isList(value, received) {
		r.Notes |= NoteDuplicate
	}
	return r
}

// single gives the trimmed value of a field that has one, and the report so far; ok is false when
// the report is complete without a value.
func single(values []string, received time.Time) (r Report, value string, ok bool) {
	r = Report{Received: received}
	switch {
	case len(values) == 0:
		return r, "", false
	case len(values) > 1:
		// Neither value is to be trusted, so neither is looked at, and the shorter one cannot win.
		r.Kind, r.Notes = KindInvalid, NoteDuplicate
		return r, "", false
	}
	if oversized(values[0]) {
		r.Notes |= NoteOversized
	}
	return r, trim(values[0]), true
}

// oversized counts characters: a byte that is not UTF-8 counts as one, so a Latin-1 field is
// measured like any other.
func oversized(value string) bool {
	return len(value) > MaxLength && utf8.RuneCountInString(value) > MaxLength
}

// trim drops the optional white space of RFC 9110 section 5.6.3, and nothing else.
func trim(value string) string { return strings.Trim(value, " \t") }

// one reads a single trimmed value into r.
func one(r *Report, value string) {
	if seconds, ok, fits := digits(value); ok {
		r.Kind, r.Form, r.Seconds = KindSeconds, FormDelaySeconds, seconds
		if !fits {
			r.Notes |= NoteUnrepresentable
		}
		return
	}
	date(r, value)
}

// digits reads 1*DIGIT. When the number does not fit an int64, fits is false and n is zero.
func digits(value string) (n int64, ok, fits bool) {
	if value == "" {
		return 0, false, false
	}
	fits = true
	for i := range len(value) {
		c := value[i] - '0' // wraps for what sorts before '0'
		if c > 9 {
			return 0, false, false
		}
		if !fits || n > (math.MaxInt64-int64(c))/10 {
			n, fits = 0, false
			continue
		}
		n = n*10 + int64(c)
	}
	return n, true, fits
}

// isList reports whether an invalid value is a comma list that holds at least one well-formed
// value, or nothing but commas. Dates have a comma of their own, after the day name.
func isList(value string, received time.Time) bool {
	if !strings.Contains(value, ",") {
		return false
	}
	found, blank := false, true
	for rest, more := value, true; more && !found; {
		var element string
		element, rest, more = strings.Cut(rest, ",")
		if more && isWeekday(trim(element)) {
			var tail string
			tail, rest, more = strings.Cut(rest, ",")
			element += "," + tail
		}
		element = trim(element)
		r := Report{Received: received}
		one(&r, element)
		found = r.Kind != KindInvalid
		blank = blank && element == ""
	}
	return found || blank
}
