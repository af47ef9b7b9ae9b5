// Package retryafter reads the HTTP field Retry-After: facts first, policy elsewhere.
//
// [Parse] reports what a response said (RFC 9110 section 10.2.3, with the three date forms of
// section 5.6.7): exact, bounded, and without ever guessing. It knows no fallback, no maximum and
// no clock; how long to wait, and whether to wait at all, is decided by the callers.
// [FormatSeconds] and [FormatDate] print what Parse reads. [ParseHeader] also reads the fields in
// milliseconds that some services send beside it, or in its place.
//
// Everything here is a pure function of its arguments and safe for concurrent use.
//
// # Stability
//
// The names here stay as they are within a major version, and so does the report of every field
// that RFC 9110 allows. New notes and forms may be added; a field that is reported as invalid may
// be reported as more than that only if an RFC comes to allow it.
package retryafter

import (
	"math"
	"time"
)

// Kind says what a response said about a delay.
type Kind uint8

// The kinds. The zero Report is a missing field.
const (
	KindMissing Kind = iota // the response has no such field
	KindInvalid             // there is a field, but not one that RFC 9110 allows
	KindSeconds             // delay-seconds
	KindDate                // an HTTP-date
)

// String is the kind's name in JSON, logs and journals: "missing", "invalid", "seconds" or "date".
func (k Kind) String() string {
	switch k {
	case KindMissing:
		return "missing"
	case KindSeconds:
		return "seconds"
	case KindDate:
		return "date"
	case KindInvalid:
	}
	return "invalid"
}

// Form says in which spelling the value came.
type Form uint8

// The forms of RFC 9110 sections 10.2.3 and 5.6.7, and the one of the fields in milliseconds.
const (
	FormNone         Form = iota
	FormDelaySeconds      // 120
	FormIMFFixdate        // Tue, 01 Dec 2026 12:02:00 GMT
	FormRFC850            // Tuesday, 01-Dec-26 12:02:00 GMT
	FormAsctime           // Tue Dec  1 12:02:00 2026
	// FormMilliseconds is a whole number of milliseconds in a field of its own; see
	// [ParseMilliseconds].
	FormMilliseconds
)

// String is the form's grammar name in lower case, or "" for FormNone.
func (f Form) String() string {
	switch f {
	case FormDelaySeconds:
		return "delay-seconds"
	case FormIMFFixdate:
		return "imf-fixdate"
	case FormRFC850:
		return "rfc850-date"
	case FormAsctime:
		return "asctime-date"
	case FormMilliseconds:
		return "milliseconds"
	case FormNone:
	}
	return ""
}

// Notes is a set of remarks about a field that a policy or a diagnosis may want to know.
type Notes uint8

// The notes.
const (
	// NoteDuplicate: two or more field lines, or a comma list in one line. The field is a singleton
	// (RFC 9110 section 5.3).
	NoteDuplicate Notes = 1 << iota
	// NoteUnrepresentable: more seconds than an int64 holds, or a two-digit year in which the 29th
	// of February does not exist. There is no delay; a policy must treat the wait as endless, never
	// as short.
	NoteUnrepresentable
	// NoteOversized: the field is longer than MaxLength characters, counted before trimming.
	NoteOversized
	// NoteWeekday: the day name is a real one but not that of the date.
	NoteWeekday
)

// Has reports whether all of n are set.
func (s Notes) Has(n Notes) bool { return s&n == n }

// Strings lists the names of the notes that are set, in a fixed order; nil when there are none.
func (s Notes) Strings() []string {
	var names []string
	for i, name := range [...]string{"duplicate", "unrepresentable", "oversized", "weekday"} {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// MaxLength is the number of characters above which a field is noted as oversized.
const MaxLength = 128

// maxYear is the last year that RFC 3339 can write, and so the last one that a record or a JSON
// answer can hold.
const maxYear = 9999

// Report is what one response said. It holds no text of the field, so it can be logged and stored.
type Report struct {
	Kind  Kind
	Form  Form
	Notes Notes
	// Seconds is the delay of KindSeconds, in seconds; meaningless with NoteUnrepresentable.
	Seconds int64
	// Date is the absolute instant of KindDate, in UTC.
	Date time.Time
	// Received is the receipt time that was given to Parse.
	Received time.Time
}

// DelaySeconds is the delay from the receipt time in whole seconds: exact, rounded up, never
// negative. A date in the past is 0 seconds. It is false for a missing, an invalid and an
// unrepresentable field.
func (r Report) DelaySeconds() (int64, bool) {
	switch {
	case r.Notes.Has(NoteUnrepresentable):
		return 0, false
	case r.Kind == KindSeconds:
		return r.Seconds, true
	case r.Kind == KindDate:
		// Dates are whole seconds, so dropping the fraction of the receipt time is the same as
		// rounding the difference up.
		return nonNegativeDifference(r.Date.Unix(), r.Received.Unix()), true
	}
	return 0, false
}

// Delay is the delay from the receipt time: exact, never negative, and held at the largest Duration
// (some 292 years) where it does not fit; that includes unrepresentable seconds. It is false for a
// missing or an invalid field.
func (r Report) Delay() (time.Duration, bool) {
	switch r.Kind {
	case KindSeconds:
		if r.Notes.Has(NoteUnrepresentable) || r.Seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(r.Seconds) * time.Second, true
	case KindDate:
		return max(0, r.Date.Sub(r.Received)), true // Sub saturates
	case KindMissing, KindInvalid:
	}
	return 0, false
}

// NotBefore is the instant until which the server asked not to be contacted, in UTC: the date
// itself (which may be before the receipt time), or the receipt time plus the seconds. It is false
// where there is none and where it is after the year 9999.
func (r Report) NotBefore() (time.Time, bool) {
	switch {
	case r.Kind == KindDate:
		return r.Date, r.Date.Year() <= maxYear
	case r.Kind == KindSeconds && !r.Notes.Has(NoteUnrepresentable):
		at := r.Received.UTC()
		if at.Year() > maxYear || r.Seconds > lastSecond-at.Unix() {
			return time.Time{}, false
		}
		return time.Unix(at.Unix()+r.Seconds, int64(at.Nanosecond())).UTC(), true
	}
	return time.Time{}, false
}

// lastSecond is 9999-12-31T23:59:59Z, in Unix seconds.
const lastSecond = 253402300799

// nonNegativeDifference is a-b held within 0 and the largest int64.
func nonNegativeDifference(a, b int64) int64 {
	d := a - b
	switch {
	case a <= b:
		return 0
	case d < 0: // a positive and b far below zero: the difference wrapped
		return math.MaxInt64
	}
	return d
}
