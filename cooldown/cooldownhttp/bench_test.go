package cooldownhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What the transport adds to a request while the authority is open is a context, a trace and a
// watcher, and stays that small.
func TestOpenPathAllocatesLittle(t *testing.T) {
	response := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	base := roundTripper(func(*http.Request) (*http.Response, error) { return response, nil })
	transport := &cooldownhttp.Transport{Base: base, Table: cooldown.New(cooldown.Options{})}
	r, _ := http.NewRequest(http.MethodGet, "https://registry.example/x", nil)
	if n := testing.AllocsPerRun(1000, func() {
		if got, err := transport.RoundTrip(r); got != response || err != nil {
			panic("not the response")
		}
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOpen(b *testing.B) {
	response := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	base := roundTripper(func(*http.Request) (*http.Response, error) { return response, nil })
	r, _ := http.NewRequest(http.MethodGet, "https://registry.example/x", nil)
	for name, transport := range map[string]http.RoundTripper{
		"bare":     base,
		"cooldown": &cooldownhttp.Transport{Base: base, Table: cooldown.New(cooldown.Options{})},
		"noclock":  &cooldownhttp.Transport{Base: base, Table: cooldown.New(cooldown.Options{}), Now: func() time.Time { return time.Time{} }},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = transport.RoundTrip(r)
				}
			})
		})
	}
}
