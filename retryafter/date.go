package retryafter

import (
	"strings"
	"time"
)

// The shapes of the three HTTP-date forms. Each letter stands for a field: D day, d day that may be
// space padded, M month, Y four-digit year, y two-digit year, h m s time; everything else stands
// for itself.
const (
	shapeIMF     = ", DD MMM YYYY hh:mm:ss GMT"
	shapeRFC850  = ", DD-MMM-yy hh:mm:ss GMT"
	shapeAsctime = " MMM dd hh:mm:ss YYYY"
)

// RFC 9110 section 5.6.7: a two-digit year more than 50 years ahead is in the past.
const futureYears = 50

// fields are the numbers of a date as written.
type fields struct {
	year, day, hour, minute, second int
	month                           time.Month
}

// date reads one of the three forms into r, or makes it invalid.
func date(r *Report, value string) {
	r.Kind = KindInvalid
	for day := time.Sunday; day <= time.Saturday; day++ {
		long := day.String()
		if rest, ok := strings.CutPrefix(value, long); ok {
			if f, ok := match(rest, shapeRFC850); ok {
				resolveRFC850(r, f, day)
			}
			return
		}
		rest, ok := strings.CutPrefix(value, long[:3])
		if !ok {
			continue
		}
		if f, ok := match(rest, shapeIMF); ok {
			resolve(r, FormIMFFixdate, f, day)
		} else if f, ok := match(rest, shapeAsctime); ok {
			resolve(r, FormAsctime, f, day)
		}
		return
	}
}

// match reads the part of a date after the day name by its shape, checking every range except the
// length of the month.
func match(value, shape string) (f fields, ok bool) {
	if len(value) != len(shape) {
		return f, false
	}
	for i := 0; i < len(shape); {
		width := 1
		for i+width < len(shape) && shape[i+width] == shape[i] {
			width++
		}
		text := value[i : i+width]
		switch shape[i] {
		case 'D':
			f.day, ok = number(text)
		case 'd':
			if text[0] == ' ' {
				text = text[1:]
			}
			f.day, ok = number(text)
		case 'M':
			if width == 3 { // the one-letter M of GMT stands for itself
				f.month, ok = month(text)
			} else {
				ok = text == "M"
			}
		case 'Y', 'y':
			f.year, ok = number(text)
		case 'h':
			f.hour, ok = number(text)
		case 'm':
			f.minute, ok = number(text)
		case 's':
			f.second, ok = number(text)
		default:
			ok = text == shape[i:i+width]
		}
		if !ok {
			return f, false
		}
		i += width
	}
	// Second 60 is a leap second; it is read at any minute, since the later reading never shortens
	// a wait.
	return f, f.day >= 1 && f.day <= 31 && f.hour <= 23 && f.minute <= 59 && f.second <= 60
}

// number reads one to four ASCII digits.
func number(text string) (int, bool) {
	n := 0
	for i := range len(text) {
		c := text[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, text != ""
}

// month reads a three-letter month name; the case matters.
func month(text string) (time.Month, bool) {
	for m := time.January; m <= time.December; m++ {
		if m.String()[:3] == text {
			return m, true
		}
	}
	return 0, false
}

// isWeekday accepts short and long day names in any case.
func isWeekday(text string) bool {
	for day := time.Sunday; day <= time.Saturday; day++ {
		long := day.String()
		if strings.EqualFold(text, long) || strings.EqualFold(text, long[:3]) {
			return true
		}
	}
	return false
}

// exists reports whether the month has such a day.
func (f fields) exists() bool {
	return f.midnight().Day() == f.day
}

func (f fields) midnight() time.Time {
	return time.Date(f.year, f.month, f.day, 0, 0, 0, 0, time.UTC)
}

// instant is the absolute time; second 60 is the following instant.
func (f fields) instant() time.Time {
	return time.Date(f.year, f.month, f.day, f.hour, f.minute, f.second, 0, time.UTC)
}

// resolve completes r with a date whose year is written out: any four digits, so that a server
// which prints its zero time names a past date.
func resolve(r *Report, form Form, f fields, day time.Weekday) {
	if !f.exists() {
		return
	}
	r.Kind, r.Form, r.Date = KindDate, form, f.instant()
	if f.midnight().Weekday() != day {
		r.Notes |= NoteWeekday
	}
}

// resolveRFC850 completes r with a date of a two-digit year: the latest year with these digits that
// puts the date not more than 50 years after the receipt time (RFC 9110 section 5.6.7). The weekday
// has no say in it.
func resolveRFC850(r *Report, f fields, day time.Weekday) {
	received := r.Received.UTC()
	horizon := received.AddDate(futureYears, 0, 0)
	digits := f.year
	f.year = horizon.Year() - mod100(horizon.Year()) + digits
	for f.instant().After(horizon) {
		f.year -= 100
	}
	if !f.exists() {
		if f.month == time.February && f.day == 29 {
			r.Notes |= NoteUnrepresentable
		}
		return
	}
	r.Kind, r.Form, r.Date = KindDate, FormRFC850, f.instant()
	if f.midnight().Weekday() != day {
		r.Notes |= NoteWeekday
	}
}

// mod100 is the year's place in its century, also before the year 0.
func mod100(year int) int { return (year%100 + 100) % 100 }
