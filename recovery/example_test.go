package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/ecluse-gate/ecluse/recovery"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// S154: the package knows no service; these are for any HTTP interface.

// answers is a service that gives one status after the other, each 429 with a Retry-After of as
// many seconds as are asked for.
func answers(seconds string, statuses ...int) *httptest.Server {
	n := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := statuses[n]
		n++
		w.Header().Set("X-Request-Id", fmt.Sprint("request-", n))
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", seconds)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, "page ", n)
	}))
}

// Three pages under one sequence: the second is throttled once, and read again after the wait.
func ExampleGet() {
	server := answers("0", 200, 429, 200, 200)
	defer server.Close()
	ctx := context.Background()

	seq := recovery.New(recovery.Options{MaxRequests: 200})
	for range 3 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		page, err := recovery.Get(ctx, seq, http.DefaultTransport, req, recovery.GetOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(page.Body))
	}
	fmt.Println(seq.Warnings()[0])
	// Output:
	// page 1
	// page 3
	// page 4
	// read request ids: request-1, request-2, request-3, request-4
}

// A wait that is too long is not shortened: the read stops at once and says how long the server
// wants to be left alone.
func ExampleStop() {
	server := answers("3600", 429)
	defer server.Close()
	ctx := context.Background()

	seq := recovery.New(recovery.Options{})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	_, err := recovery.Get(ctx, seq, http.DefaultTransport, req, recovery.GetOptions{})
	if stop, ok := errors.AsType[*recovery.Stop](err); ok {
		fmt.Println(stop.Code, stop.Delay)
	}
	if status, ok := errors.AsType[*recovery.StatusError](err); ok {
		fmt.Println("first failure:", status)
	}
	// Output:
	// read-recovery-delay-exceeded 1h0m0s
	// first failure: answered with HTTP status 429, request request-1
}

// A write that was throttled is never sent again. Wait first, then read the outcome.
func ExampleSequence_Wait() {
	server := answers("0", 429, 404)
	defer server.Close()
	ctx := context.Background()

	put, _ := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, nil)
	resp, err := http.DefaultTransport.RoundTrip(put)
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome := recovery.Outcome{
		Status:     resp.StatusCode,
		RetryAfter: retryafter.Parse(resp.Header.Values("Retry-After"), time.Now()),
		CloseErr:   resp.Body.Close(),
	}

	seq := recovery.New(recovery.Options{})
	if err := seq.Wait(ctx, outcome); err != nil {
		fmt.Println(err)
		return
	}
	get, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	_, err = recovery.Get(ctx, seq, http.DefaultTransport, get, recovery.GetOptions{})
	fmt.Println(err)
	// Output:
	// answered with HTTP status 404, request request-2
}
