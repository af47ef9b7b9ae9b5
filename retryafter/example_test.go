package retryafter_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

func Example() {
	header := http.Header{"Retry-After": {"120"}}
	received := time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)

	report := retryafter.Parse(header.Values("Retry-After"), received)
	delay, ok := report.Delay()
	at, _ := report.NotBefore()
	fmt.Println(report.Kind, delay, ok, at.Format(time.RFC3339))
	// Output: seconds 2m0s true 2026-12-01T12:02:00Z
}

func ExampleParse() {
	received := time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)
	for _, values := range [][]string{
		nil,
		{"120"},
		{"Tuesday, 01-Dec-26 12:02:00 GMT"},
		{"9223372037"},
		{"99999999999999999999"},
		{"-5"},
		{"5", "10"},
	} {
		r := retryafter.Parse(values, received)
		seconds, ok := r.DelaySeconds()
		fmt.Println(r.Kind, r.Form, seconds, ok, r.Notes.Strings())
	}
	// Output:
	// missing  0 false []
	// seconds delay-seconds 120 true []
	// date rfc850-date 120 true []
	// seconds delay-seconds 9223372037 true []
	// seconds delay-seconds 0 false [unrepresentable]
	// invalid  0 false []
	// invalid  0 false [duplicate]
}

func ExampleParseHeader() {
	received := time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)
	header := http.Header{}
	header.Set("Retry-After", "5")
	header.Set("x-ms-retry-after-ms", "20500")
	r := retryafter.ParseHeader(header, received)
	seconds, _ := r.DelaySeconds()
	fmt.Println(r.Kind, r.Form, seconds)
	// Output: seconds milliseconds 21
}

func ExampleReport_Canonical() {
	received := time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"30", "31", "Tue, 01 Dec 2026 12:02:00 GMT"} {
		c := retryafter.Parse([]string{value}, received).Canonical()
		fmt.Println(c.Kind, c.Value)
	}
	// Output:
	// seconds 30
	// overlong 0
	// date 1796126520
}

func ExampleFormatSeconds() {
	fmt.Println(retryafter.FormatSeconds(1500 * time.Millisecond))
	// Output: 2
}

func ExampleFormatDate() {
	fmt.Println(retryafter.FormatDate(time.Date(2026, time.December, 1, 13, 2, 0, 0, time.FixedZone("CET", 3600))))
	// Output: Tue, 01 Dec 2026 12:02:00 GMT
}
