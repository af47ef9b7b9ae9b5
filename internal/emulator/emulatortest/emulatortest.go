// Package emulatortest gives tests an emulator: on a socket, or over memory so that it runs in
// virtual time.
package emulatortest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator"
	"github.com/ecluse-gate/ecluse/internal/fake/memnet"
)

// What tests need of the emulator, so that packages below it can test against it.
type (
	Emulator = emulator.Emulator
	Options  = emulator.Options
	Request  = emulator.Request
	State    = emulator.State
)

// Token is the emulator's token.
const Token = emulator.Token

// New makes an emulator, or ends the test.
func New(t testing.TB, options Options) *Emulator {
	t.Helper()
	e, err := emulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Script sets a script given as JSON, or ends the test.
func Script(t testing.TB, e *Emulator, text string) {
	t.Helper()
	rules, err := emulator.ParseScript(strings.NewReader(text))
	if err == nil {
		err = e.SetScript(rules)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Socket serves the handler on a loopback socket until the test ends, and gives its address.
func Socket(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// Transport serves the handler over in-memory connections and gives a transport that reaches
// nothing else, whatever the host of a request; requests must be http. Both end with the test. In
// virtual time, call it inside the bubble.
func Transport(t testing.TB, handler http.Handler) *http.Transport {
	t.Helper()
	const address = "emulator:80"
	network := memnet.New()
	listener := network.Listen(address)
	server := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return network.Dial(ctx, "tcp", address)
		},
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-ended
	})
	return transport
}
