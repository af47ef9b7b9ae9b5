package retryafter

import "time"

// Canonical is the closed pair (kind, value) that records and bounded recoveries work with. Kind is
// one of "missing", "invalid", "seconds", "date", "date-rfc850" and "overlong". Value is the number
// of seconds (0 to 30) of "seconds", the Unix time of the two date kinds, and 0 of all others.
//
// An overlong field has no usable delay at all: more than 30 seconds, unrepresentable, or longer
// than MaxLength whatever it holds. It must stop a recovery; it is never shortened and never zero.
type Canonical struct {
	Kind  string
	Value int64
}

// canonicalSeconds is the largest delay that a canonical pair can hold, in seconds.
const canonicalSeconds = 30

// The canonical kinds that are not a Kind.
const (
	canonicalOverlong = "overlong"
	canonicalRFC850   = "date-rfc850"
)

// Canonical derives the pair from the report. The checks come in this order: count of fields,
// length, form, size of the value.
func (r Report) Canonical() Canonical {
	switch {
	case r.Notes&(NoteOversized|NoteUnrepresentable) != 0,
		r.Kind == KindSeconds && r.Seconds > canonicalSeconds,
		r.Kind == KindDate && r.Date.Year() > maxYear:
		return Canonical{Kind: canonicalOverlong}
	case r.Kind == KindSeconds:
		return Canonical{Kind: r.Kind.String(), Value: r.Seconds}
	case r.Kind == KindDate && r.Form == FormRFC850:
		return Canonical{Kind: canonicalRFC850, Value: r.recordedDate()}
	case r.Kind == KindDate:
		return Canonical{Kind: r.Kind.String(), Value: r.recordedDate()}
	}
	return Canonical{Kind: r.Kind.String()}
}

// Timing is the portable timing beside a canonical pair: whole Unix seconds in UTC, the receipt
// rounded down and the not-before rounded up, so that rounding never shortens a wait.
type Timing struct {
	// ReceivedUnix is the receipt time; 0 when ReceivedKnown is false.
	ReceivedUnix int64
	// ReceivedKnown is false when the receipt clock was zero or outside the years 1 to 9999.
	// Nothing else is known then.
	ReceivedKnown bool
	// NotBeforeUnix is the first second at which a request may be sent, nil when it is unknown:
	// such a restriction stays unresolved. A date is recorded as it is, also when it lies before
	// the receipt.
	NotBeforeUnix *int64
	// ServerDelaySeconds is the delay that the server named in seconds, exact; nil for dates,
	// fallbacks and wherever NotBeforeUnix is nil.
	ServerDelaySeconds *int64
}

// missingDelay is what stands in for a missing or an invalid field in a record, in seconds.
const missingDelay = 1

// Timing derives the timing from the report.
func (r Report) Timing() Timing {
	received := r.Received.UTC()
	if received.IsZero() || !recordable(received) {
		return Timing{}
	}
	t := Timing{ReceivedUnix: received.Unix(), ReceivedKnown: true}
	switch {
	case r.Notes&(NoteOversized|NoteUnrepresentable) != 0:
	case r.Kind == KindDate:
		if r.Date.Year() <= maxYear {
			t.NotBeforeUnix = new(r.recordedDate())
		}
	case r.Kind == KindSeconds:
		if t.NotBeforeUnix = secondsAfter(received, r.Seconds); t.NotBeforeUnix != nil {
			t.ServerDelaySeconds = new(r.Seconds)
		}
	default:
		t.NotBeforeUnix = secondsAfter(received, missingDelay)
	}
	return t
}

// secondsAfter is received plus n seconds, rounded up, or nil when that is not before the
// year 10000.
func secondsAfter(received time.Time, n int64) *int64 {
	from := received.Unix()
	if received.Nanosecond() != 0 {
		from++
	}
	if n > lastSecond-from {
		return nil
	}
	return new(from + n)
}

// firstSecond is 0001-01-01T00:00:00Z, in Unix seconds.
const firstSecond = -62135596800

// recordedDate is the date of a report, in Unix seconds, as a record holds it. The year 0, which
// the grammar allows, is as past as the year 1, which a record can hold.
func (r Report) recordedDate() int64 { return max(r.Date.Unix(), firstSecond) }

// recordable reports whether a record can hold the instant.
func recordable(t time.Time) bool { return t.Year() >= 1 && t.Year() <= maxYear }
