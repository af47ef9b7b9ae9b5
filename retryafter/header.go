package retryafter

import (
	"math"
	"slices"
	"strings"
	"time"
)

// The fields of a response that say when to come back. The second and the third are not of any RFC:
// services on Azure send them beside or in place of the first, and count milliseconds.
const (
	fieldStandard = "Retry-After"
	fieldMillis   = "Retry-After-Ms"
	fieldMSMillis = "X-Ms-Retry-After-Ms"
)

// ParseHeader reads everything in a response's header that asks for a delay: Retry-After as [Parse]
// does, and retry-after-ms and x-ms-retry-after-ms as [ParseMilliseconds] does. It reports the
// field that [Later] prefers, so that no field shortens what another one asks for. Names are
// compared in any case. The argument may be an http.Header.
func ParseHeader(header map[string][]string, received time.Time) Report {
	r := Parse(values(header, fieldStandard), received)
	for _, name := range [...]string{fieldMillis, fieldMSMillis} {
		r = Later(r, ParseMilliseconds(values(header, name), received))
	}
	return r
}

// values are the lines of one field, under whatever spelling of its name.
func values(header map[string][]string, name string) []string {
	all := header[name]
	for key, more := range header {
		if key != name && strings.EqualFold(key, name) {
			all = append(slices.Clip(all), more...)
		}
	}
	return all
}

// ParseMilliseconds reads the values of all lines of one field that counts milliseconds, such as
// retry-after-ms. The grammar is that of delay-seconds: ASCII digits and nothing else, one line,
// one value. The report is of [KindSeconds] and [FormMilliseconds], in seconds that are rounded up,
// so that rounding never shortens a wait.
func ParseMilliseconds(values []string, received time.Time) Report {
	r, value, ok := single(values, received)
	if !ok {
		return r
	}
	millis, ok, fits := digits(value)
	if !ok {
		r.Kind = KindInvalid
		return r
	}
	r.Kind, r.Form = KindSeconds, FormMilliseconds
	if !fits {
		r.Notes |= NoteUnrepresentable
		return r
	}
	if r.Seconds = millis / 1000; millis%1000 != 0 {
		r.Seconds++
	}
	return r
}

// Later gives the report that asks for the longer delay, of two about one response; the first of
// two that ask for the same. A missing or an invalid field counts for the second that callers wait
// in its place ([Report.Timing]), so that a zero beside it does not shorten that. A field that is
// oversized, or whose delay cannot be represented, is later than everything: it is never set aside
// for another.
func Later(a, b Report) Report {
	switch one, two := rank(a), rank(b); {
	case b.Kind == KindMissing || two < one:
		return a
	case two > one, a.Kind == KindMissing, known(b) && !known(a):
		return b
	}
	return a
}

// rank is the delay that a report comes to, for comparing.
func rank(r Report) time.Duration {
	if r.Notes&(NoteOversized|NoteUnrepresentable) != 0 {
		return math.MaxInt64
	}
	if d, ok := r.Delay(); ok {
		return d
	}
	return missingDelay * time.Second
}

// known says that a report is of a delay.
func known(r Report) bool { return r.Kind == KindSeconds || r.Kind == KindDate }
