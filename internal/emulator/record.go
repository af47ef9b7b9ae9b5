package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

const (
	maxRequests     = 100_000   // record length; the oldest fall off and the numbers show the gap
	maxRequestBytes = 128 << 20 // no request body of the service is larger
)

// Request is one recorded request. Every field but the token is kept; bodies only as length and
// digest.
type Request struct {
	Seq        int         `json:"seq"` // 1, 2, 3… in order of arrival
	ID         string      `json:"request_id"`
	Time       time.Time   `json:"time"`
	Method     string      `json:"method"`
	Path       string      `json:"path"` // as sent, still percent-encoded
	Query      string      `json:"query,omitempty"`
	Headers    http.Header `json:"headers"`   // without Authorization and api-key
	HasToken   bool        `json:"has_token"` // a bearer token was sent
	BodyBytes  int64       `json:"body_bytes"`
	BodySHA256 string      `json:"body_sha256"`
	// the client did not send all of it, or it was too large to read
	BodyPartial bool `json:"body_partial,omitempty"`
	// set when a script rule acted: was the request really carried out
	Performed *bool   `json:"performed,omitempty"`
	Answer    *Answer `json:"answer"` // null while the request is in flight
}

// Answer is what a recorded request was answered.
type Answer struct {
	Status  int         `json:"status"` // 0 when the connection was lost before any header
	Headers http.Header `json:"headers,omitempty"`
	Reset   string      `json:"reset,omitempty"`
	Gone    bool        `json:"client_gone,omitempty"` // the client left during a scripted delay
}

// Requests gives a copy of the record, oldest first.
func (e *Emulator) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]Request, len(e.requests))
	for i, r := range e.requests {
		all[i] = *r
	}
	return all
}

func (e *Emulator) begin(r *http.Request) *Request {
	headers := r.Header.Clone()
	hasToken := headers.Get("Authorization") != ""
	headers.Del("Authorization")
	headers.Del("Api-Key")
	record := &Request{
		ID: uuid.NewString(), Time: e.now(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Headers: headers, HasToken: hasToken,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.requests) == maxRequests {
		e.requests = e.requests[1:]
		e.dropped++
	}
	record.Seq = e.dropped + len(e.requests) + 1
	e.requests = append(e.requests, record)
	return record
}

func (e *Emulator) sawPerformed(record *Request, did bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	record.Performed = &did
}

func (e *Emulator) sawBody(record *Request, body *countedBody) {
	e.mu.Lock()
	defer e.mu.Unlock()
	record.BodyBytes, record.BodySHA256 = body.seen, hex.EncodeToString(body.digest.Sum(nil))
	record.BodyPartial = !body.ended
}

func (e *Emulator) finish(record *Request, done Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	record.Answer = &done
}

// countedBody counts and hashes what is read of a request body, up to a limit.
type countedBody struct {
	source io.ReadCloser
	digest hash.Hash
	seen   int64
	limit  int64
	ended  bool
	failed error
}

func newCountedBody(source io.ReadCloser, limit int64) *countedBody {
	return &countedBody{source: source, digest: sha256.New(), limit: limit}
}

func (b *countedBody) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if b.seen >= b.limit {
		b.failed = io.ErrUnexpectedEOF
		return 0, b.failed
	}
	if int64(len(p)) > b.limit-b.seen {
		p = p[:b.limit-b.seen]
	}
	n, err := b.source.Read(p)
	b.seen += int64(n)
	b.digest.Write(p[:n])
	if err != nil {
		b.failed, b.ended = err, err == io.EOF
	}
	return n, err
}

func (b *countedBody) Close() error { return b.source.Close() }

// drain reads the rest, so that the digest covers the whole body even of a refused request.
func (b *countedBody) drain() { _, _ = io.Copy(io.Discard, b) }
