package retryafter

import (
	"strconv"
	"time"
)

// fixdate is the layout of an IMF-fixdate. GMT is part of the text: a layout with a zone would
// print the zone's own name.
const fixdate = "Mon, 02 Jan 2006 15:04:05 GMT"

// Seconds is a delay in whole seconds: rounded up, so that it never shortens a wait, at least 0.
func Seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	seconds := int64(d / time.Second)
	if d%time.Second != 0 {
		seconds++
	}
	return seconds
}

// FormatSeconds prints a delay as delay-seconds (RFC 9110), rounded as Seconds rounds.
func FormatSeconds(d time.Duration) string { return strconv.FormatInt(Seconds(d), 10) }

// firstPrinted is the first year that FormatDate prints.
const firstPrinted = 1000

// FormatDate prints an instant as an IMF-fixdate, rounded up to the second so that printing never
// shortens a wait. Instants outside the years 1000 to 9999, which not every reader takes, are
// printed as the nearest one of these.
func FormatDate(t time.Time) string {
	t = t.UTC()
	if t.Nanosecond() != 0 {
		t = t.Truncate(time.Second).Add(time.Second)
	}
	switch year := t.Year(); {
	case year < firstPrinted:
		t = time.Date(firstPrinted, time.January, 1, 0, 0, 0, 0, time.UTC)
	case year > maxYear:
		t = time.Unix(lastSecond, 0).UTC()
	}
	return t.Format(fixdate)
}
