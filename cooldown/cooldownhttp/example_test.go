package cooldownhttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
)

// The five lines: a table, a client over it, and what to do with a refusal.
func Example() {
	server := throttled()
	defer server.Close()

	table := cooldown.New(cooldown.Options{})
	client := &http.Client{Transport: &cooldownhttp.Transport{Table: table}}
	for range 2 {
		response, err := client.Get(server.URL)
		if refusal, ok := cooldown.AsRefusal(err); ok {
			fmt.Println("not sent; ask again in", refusal.RetryAfterSeconds(), "s")
		} else if err == nil {
			fmt.Println(response.Status)
			response.Body.Close()
		}
	}
	// Output:
	// 429 Too Many Requests
	// not sent; ask again in 30 s
}

// The hooks are where logs and counters go: one line per change, one count per request really sent.
func ExampleTransport() {
	server := throttled()
	defer server.Close()

	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	requests := map[string]int{}
	client := &http.Client{Transport: &cooldownhttp.Transport{
		Table: cooldown.New(cooldown.Options{}),
		OnTransition: func(_ context.Context, tr cooldown.Transition) {
			log.Info("cooldown "+tr.Kind.String(), "status", tr.Status, "delay_seconds", tr.Delay.Seconds(), "hint", tr.Hint)
		},
		OnAttempt: func(_ context.Context, a cooldownhttp.Attempt) { requests[a.Outcome()]++ },
	}}
	for range 10 {
		if response, err := client.Get(server.URL); err == nil {
			response.Body.Close()
		}
	}
	fmt.Println(requests)
	// Output:
	// level=INFO msg="cooldown entered" status=429 delay_seconds=30 hint=seconds
	// map[throttled:1]
}

// throttled is a server that always asks to be left alone for 30 s.
func throttled() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
}
