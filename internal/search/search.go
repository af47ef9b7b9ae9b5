// Package search is a typed client of the Azure AI Search REST surface that the source tool needs:
// knowledge sources, their files and status, knowledge bases, and the children that a source
// generates.
//
// One method sends one request and never a second: nothing is retried, no redirect is followed, no
// token is renewed on the way, and no request can be resent by the transport below (see once). What
// an answer means and what may happen next is decided elsewhere; so are loops, waiting and records.
// A [Recorder] can bracket every request.
//
// Every foreign byte is bounded, in number and in time, and every failure is an *[Error].
package search

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// DefaultTimeout is the longest that one exchange may take, from its first byte to its last
	// (S31, S75).
	DefaultTimeout = 180 * time.Second
	// DefaultMaxBytes bounds the body of an answer (S31).
	DefaultMaxBytes = 1 << 20

	maxHeaderBytes = 64 << 10
)

// Bounds limit one exchange. The zero value is the default timeout and the default body limit.
type Bounds struct {
	// Deadline, when set, is the latest end of the exchange, body included.
	Deadline time.Time
	// Timeout is the longest duration of the exchange; zero means DefaultTimeout.
	Timeout time.Duration
	// MaxBytes is the largest body accepted; zero means DefaultMaxBytes.
	MaxBytes int64
}

// Options make a Client. Service and Tokens are required.
type Options struct {
	Service Service
	Tokens  TokenSource
	// Transport sends the requests; nil means NewTransport(nil). It is used as a bare RoundTripper,
	// so it follows no redirect.
	Transport http.RoundTripper
	// Recorder, when set, brackets every request.
	Recorder Recorder
	// Now gives the wall clock of receipt times; nil means time.Now.
	Now func() time.Time
	// NewID gives client request ids; nil means random UUIDs.
	NewID func() string
}

// Client talks to one service. Its methods may be called from several goroutines, but a Recorder
// usually wants one at a time.
type Client struct {
	service   Service
	tokens    TokenSource
	transport http.RoundTripper
	recorder  Recorder
	now       func() time.Time
	newID     func() string

	mu      sync.Mutex // guards the fields below
	token   Token
	latched error // the first failure of the recorder: nothing is sent after it
}

// New makes a client. Nothing is sent and no token is asked for until a method is called.
func New(options Options) (*Client, error) {
	if options.Service.Endpoint.base == "" || options.Tokens == nil {
		return nil, errors.New("search: a service and a token source are required")
	}
	c := &Client{
		service: options.Service, tokens: options.Tokens, transport: options.Transport,
		recorder: options.Recorder, now: options.Now, newID: options.NewID,
	}
	if c.transport == nil {
		c.transport = NewTransport(nil)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.newID == nil {
		c.newID = uuid.NewString
	}
	return c, nil
}

// Service gives the endpoint and profile that the client talks to.
func (c *Client) Service() Service { return c.service }

// NewTransport makes the transport of the data plane: HTTP/1.1, a fresh connection for each request
// so that no write can meet a connection that the server has already given up, bounded headers, no
// transparent compression. roots nil means the system's.
func NewTransport(roots *x509.CertPool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    30 * time.Second,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              protocols,
	}
}

// RootsFromFile reads PEM certificates to trust instead of the system's, at most 1 MiB.
func RootsFromFile(path string) (*x509.CertPool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ca file: %v", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("ca file: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("ca file %s: contains no PEM certificate", path)
	}
	return roots, nil
}

// renewBefore is how long before its end a token is renewed: longer than the longest exchange.
const renewBefore = DefaultTimeout + 2*time.Minute

// Authenticate gets the token that later requests carry. It is the only method that asks for one:
// call it when the journal has nothing against it, and again between the files of a long batch,
// where it renews a token that is about to expire and else does nothing. A renewed token must
// belong to the same principal (S48). No other method changes the token, so the reads of one
// sequence all carry the same one.
func (c *Client) Authenticate(ctx context.Context) error {
	c.mu.Lock()
	held := c.token
	c.mu.Unlock()
	if held.value != "" && (held.Expires.IsZero() || c.now().Add(renewBefore).Before(held.Expires)) {
		return nil
	}
	fresh, err := acquire(ctx, c.tokens, SearchAudience)
	if err != nil {
		return err
	}
	if held.value != "" && held.Identity().differs(fresh.Identity()) {
		return &Error{Code: CodeAuthenticationFailed, Err: errPrincipalChanged}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = fresh
	return nil
}

var errPrincipalChanged = errors.New("the renewed token is for another principal")

// Identity says whom the held token was issued to, as far as the token itself says; empty before
// Authenticate.
func (c *Client) Identity() Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token.Identity()
}
