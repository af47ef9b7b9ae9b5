package retryafter_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// FuzzParse holds the parser to what must be true of every field: no panic, no negative and no
// wrapped delay, digits exact, and what is well formed prints and reads back as the same.
func FuzzParse(f *testing.F) {
	for _, v := range readVectors(f) {
		for _, value := range v.Header {
			f.Add(value, noon.Unix(), int64(0))
		}
	}
	f.Add("Tuesday, 01-Dec-76 12:00:00 GMT", int64(math.MinInt64), int64(999999999))
	f.Add("Monday, 29-Feb-00 12:00:00 GMT", int64(math.MaxInt64), int64(-1))
	f.Fuzz(func(t *testing.T, value string, sec, nsec int64) {
		r := retryafter.Parse([]string{value}, time.Unix(sec, nsec))
		checkDelays(t, r)
		checkDigits(t, value, r)
		checkRoundTrip(t, r)
		if again := retryafter.Parse([]string{" " + value + "\t"}, r.Received); again.Kind != r.Kind && len(value) < retryafter.MaxLength {
			t.Fatalf("white space around turns %v into %v", r.Kind, again.Kind)
		}
		if twice := retryafter.Parse([]string{value, value}, r.Received); twice.Kind != retryafter.KindInvalid || twice.Notes != retryafter.NoteDuplicate {
			t.Fatalf("twice is %v", twice.Kind)
		}
	})
}

func checkDelays(t *testing.T, r retryafter.Report) {
	t.Helper()
	seconds, exact := r.DelaySeconds()
	delay, usable := r.Delay()
	formed := r.Kind == retryafter.KindSeconds || r.Kind == retryafter.KindDate
	switch {
	case seconds < 0 || delay < 0:
		t.Fatalf("negative: %d %v", seconds, delay)
	case usable != formed:
		t.Fatalf("%v with a delay: %v", r.Kind, usable)
	case exact != (formed && !r.Notes.Has(retryafter.NoteUnrepresentable)):
		t.Fatalf("%v %v with seconds: %v", r.Kind, r.Notes.Strings(), exact)
	}
	if !exact {
		return
	}
	// The exact delay is never above the rounded one, and less than a second below it, unless it is
	// saturated.
	whole := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(int64(time.Second)))
	short := new(big.Int).Sub(whole, big.NewInt(int64(delay)))
	if delay != math.MaxInt64 && (short.Sign() < 0 || short.Cmp(big.NewInt(int64(time.Second))) >= 0) && recordable(r.Received) {
		t.Fatalf("%d s and %v", seconds, delay)
	}
	if c := r.Canonical(); c.Kind == "seconds" && (c.Value != seconds || seconds > 30) {
		t.Fatalf("canonical %v of %d s", c, seconds)
	}
	if timing := r.Timing(); timing.NotBeforeUnix != nil && r.Kind == retryafter.KindSeconds && *timing.NotBeforeUnix-timing.ReceivedUnix < seconds {
		t.Fatalf("timing shortens %d s", seconds)
	}
}

// recordable bounds the receipt times for which Time arithmetic is exact.
func recordable(at time.Time) bool { return at.Year() >= 1 && at.Year() <= 9999 }

func checkDigits(t *testing.T, value string, r retryafter.Report) {
	t.Helper()
	text := strings.Trim(value, " \t")
	plain := text != "" && strings.Trim(text, "0123456789") == ""
	if plain != (r.Kind == retryafter.KindSeconds) {
		t.Fatalf("%q is %v", value, r.Kind)
	}
	if !plain {
		return
	}
	want, _ := new(big.Int).SetString(text, 10)
	if want.IsInt64() == r.Notes.Has(retryafter.NoteUnrepresentable) || want.IsInt64() && want.Int64() != r.Seconds {
		t.Fatalf("%q is %d %v", value, r.Seconds, r.Notes.Strings())
	}
}

func checkRoundTrip(t *testing.T, r retryafter.Report) {
	t.Helper()
	if r.Kind == retryafter.KindDate && r.Date.Year() >= 1000 && r.Date.Year() <= 9999 {
		printed := retryafter.FormatDate(r.Date)
		again := retryafter.Parse([]string{printed}, r.Received)
		if again.Form != retryafter.FormIMFFixdate || !again.Date.Equal(r.Date) || again.Notes != 0 {
			t.Fatalf("%v prints as %s, which reads as %v", r.Date, printed, again.Date)
		}
	}
	if delay, ok := r.Delay(); ok && r.Kind == retryafter.KindSeconds && delay != math.MaxInt64 {
		printed := retryafter.FormatSeconds(delay)
		again := retryafter.Parse([]string{printed}, r.Received)
		if got, _ := again.Delay(); got != delay {
			t.Fatalf("%v prints as %s, which reads as %v", delay, printed, got)
		}
	}
}

// FuzzFormat: whatever is printed reads back as the same, rounded up.
func FuzzFormat(f *testing.F) {
	f.Add(int64(0), int64(0))
	f.Add(noon.Unix(), int64(1))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, sec, n int64) {
		at := time.Unix(sec, n)
		r := retryafter.Parse([]string{retryafter.FormatDate(at)}, noon)
		if r.Form != retryafter.FormIMFFixdate || r.Notes != 0 {
			t.Fatalf("%v prints as %q", at, retryafter.FormatDate(at))
		}
		if year := at.UTC().Year(); year >= 1000 && year < 9999 && (r.Date.Before(at) || r.Date.Sub(at) >= time.Second) {
			t.Fatalf("%v prints as %v", at, r.Date)
		}
		d := time.Duration(n)
		r = retryafter.Parse([]string{retryafter.FormatSeconds(d)}, noon)
		got, ok := r.Delay()
		if !ok || got < d || got != math.MaxInt64 && got-max(d, 0) >= time.Second {
			t.Fatalf("%v prints as %v", d, got)
		}
	})
}
