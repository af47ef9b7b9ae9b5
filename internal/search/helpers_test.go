package search_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
)

const fingerprint = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// bed is a client in front of an emulator on a socket.
type bed struct {
	t        *testing.T
	emulator *emulatortest.Emulator
	client   *search.Client
}

func newBed(t *testing.T, change ...func(*search.Options)) *bed {
	t.Helper()
	e := emulatortest.New(t, emulatortest.Options{})
	return &bed{t: t, emulator: e, client: newClient(t, emulatortest.Socket(t, e), change...)}
}

func newClient(t *testing.T, address string, change ...func(*search.Options)) *search.Client {
	t.Helper()
	endpoint, err := search.ParseEndpoint(address, true)
	if err != nil {
		t.Fatal(err)
	}
	options := search.Options{
		Service: search.Service{Endpoint: endpoint, Profile: search.ProfileGA},
		Tokens:  search.FixedToken(emulatortest.Token),
	}
	for _, f := range change {
		f(&options)
	}
	client, err := search.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Authenticate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client
}

func (b *bed) script(text string) {
	b.t.Helper()
	emulatortest.Script(b.t, b.emulator, text)
}

const manuals = `{"name":"manuals","kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"minimal"}}}`

func (b *bed) create() *search.Resource {
	b.t.Helper()
	made, err := b.client.Put(b.t.Context(), search.KnowledgeSources, "manuals", []byte(manuals), search.IfAbsent(), search.Bounds{})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// sent counts the recorded requests of a method.
func (b *bed) sent(method string) int {
	n := 0
	for _, r := range b.emulator.Requests() {
		if r.Method == method {
			n++
		}
	}
	return n
}

func uploadOf(content string) wire.Upload {
	sum := sha256.Sum256([]byte(content))
	return wire.Upload{
		Name: "guide.txt", Metadata: map[string]string{"ecluseOwner": "me"}, MediaType: "text/plain", Fingerprint: fingerprint,
		Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Content: strings.NewReader(content),
	}
}

// failure unwraps an error that must be one of the package's.
func failure(t *testing.T, err error) *search.Error {
	t.Helper()
	failed, ok := errors.AsType[*search.Error](err)
	if !ok {
		t.Fatalf("error is %v, want a *search.Error", err)
	}
	return failed
}

func wantCode(t *testing.T, err error, code string) *search.Error {
	t.Helper()
	failed := failure(t, err)
	if failed.Code != code {
		t.Fatalf("error is %q (%v), want code %s", failed.Code, err, code)
	}
	return failed
}

// transportFunc is a transport made of a function.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// canned is a transport that always gives the same answer; headers are pairs.
func canned(status int, body io.ReadCloser, headers ...string) transportFunc {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		header := http.Header{}
		for i := 0; i+1 < len(headers); i += 2 {
			header.Add(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: header, Body: body, Request: r}, nil
	}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

// over makes a client over a transport that reaches nothing.
func over(t *testing.T, transport http.RoundTripper, change ...func(*search.Options)) *search.Client {
	t.Helper()
	change = append([]func(*search.Options){func(o *search.Options) { o.Transport = transport }}, change...)
	return newClient(t, "http://127.0.0.1:1", change...)
}

func getManuals(ctx context.Context, c *search.Client, bounds search.Bounds) error {
	_, err := c.Get(ctx, search.KnowledgeSources, "manuals", bounds)
	return err
}

func putManuals(ctx context.Context, c *search.Client, bounds search.Bounds) (*search.Resource, error) {
	return c.Put(ctx, search.KnowledgeSources, "manuals", []byte(manuals), search.IfAbsent(), bounds)
}
