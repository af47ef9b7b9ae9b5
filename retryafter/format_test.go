package retryafter_test

import (
	"math"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

func TestFormatSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", -1: "0", math.MinInt64: "0", 1: "1", time.Second: "1", time.Second + 1: "2", 1500 * time.Millisecond: "2", 600 * time.Second: "600", math.MaxInt64: "9223372037",
	} {
		if got := retryafter.FormatSeconds(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestFormatDate(t *testing.T) {
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{noon, "Tue, 01 Dec 2026 12:00:00 GMT"},
		{noon.Add(1), "Tue, 01 Dec 2026 12:00:01 GMT"}, // never earlier than what was meant
		{noon.In(time.FixedZone("CET", 3600)), "Tue, 01 Dec 2026 12:00:00 GMT"},
		{time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC), "Fri, 31 Dec 9999 23:59:59 GMT"},
		{time.Date(9999, 12, 31, 23, 59, 59, 1, time.UTC), "Fri, 31 Dec 9999 23:59:59 GMT"},
		{time.Time{}, "Wed, 01 Jan 1000 00:00:00 GMT"},
	} {
		got := retryafter.FormatDate(test.at)
		if got != test.want {
			t.Errorf("%v: %s, want %s", test.at, got, test.want)
		}
		if r := parse(got); r.Kind != retryafter.KindDate || r.Form != retryafter.FormIMFFixdate || r.Notes != 0 {
			t.Errorf("%s does not read back: %v %v", got, r.Kind, r.Notes.Strings())
		}
	}
}
