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
