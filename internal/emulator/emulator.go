// Package emulator plays the part of an Azure AI Search service that a script can make throttle,
// stall and lie.
//
// It serves knowledge sources with their files, knowledge bases and generated children, close
// enough for a client that follows the documentation, and records every request so that a test can
// assert what was (and what was not) sent. File content is hashed while it streams by and never
// kept. It refuses to be a service: nothing is indexed, searched or stored on disk.
//
// The handler takes no sleep of its own; only scripted delays wait, and they end with the request's
// context, so it works over an in-memory pipe in virtual time as well as over a socket.
package emulator

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator/service"
)

// Token is the bearer token that a client run with --emulator sends. It opens nothing; a real
// service refuses it.
const Token = "ecluse-emulator-token"

// Options configure an emulated service. The zero value is a Basic service that accepts any
// non-empty bearer token.
type Options struct {
	// Tier is one of free, basic, s1, s2, s3, s3hd, l1, l2, serverless; it decides the limits.
	// Empty means basic.
	Tier string
	// Token, when set, is the only bearer token accepted.
	Token string
	// MaxFiles lowers or raises the number of files a source may hold. Zero means what the API
	// version documents.
	MaxFiles int
	// MaxFileBytes lowers the size a file may have. Zero means what the tier documents.
	MaxFileBytes int64
	// BaseURL is what next links begin with, without a final slash. Empty means the scheme and host
	// of the request.
	BaseURL string
	// Script is the first script; see SetScript.
	Script []Rule
	// Now is the clock of timestamps, record times and date templates. Nil means time.Now.
	Now func() time.Time
}

// Emulator is one emulated service: an http.Handler with its own state, script and record. Safe for
// concurrent use.
type Emulator struct {
	service *service.Service
	now     func() time.Time

	mu       sync.Mutex // guards everything below
	script   []*liveRule
	requests []*Request
	dropped  int // requests that fell off the front of the record
}

// State is what the service holds; see GET /emulator/state.
type State = service.State

// New makes an emulated service. It fails on an unknown tier or a script that SetScript would
// refuse.
func New(options Options) (*Emulator, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	held, err := service.New(service.Options{
		Tier: options.Tier, Token: options.Token, MaxFiles: options.MaxFiles, MaxFileBytes: options.MaxFileBytes, BaseURL: options.BaseURL, Now: options.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	e := &Emulator{service: held, now: func() time.Time { return options.Now().UTC() }}
	if err := e.SetScript(options.Script); err != nil {
		return nil, err
	}
	return e, nil
}

// State gives a copy of what the service holds, sorted by name; files in order of arrival.
func (e *Emulator) State() State { return e.service.State() }

// Reset empties everything: sources, files, bases, the record of requests and the script.
func (e *Emulator) Reset() {
	e.service.Reset()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script, e.requests, e.dropped = nil, nil, 0
}

// ServeHTTP answers one request of the service, or of the admin surface under /emulator/.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/emulator/") {
		e.admin(w, r)
		return
	}
	body := newCountedBody(r.Body, maxRequestBytes)
	r.Body = body
	record := e.begin(r)
	act := e.match(r)
	reply := e.reply(r, record, act)
	body.drain()
	e.sawBody(record, body)
	e.send(w, r, record, reply, act)
}

// reply decides the answer: the true one, a scripted one, or a true one bent by the script.
func (e *Emulator) reply(r *http.Request, record *Request, act *Act) service.Answer {
	if act == nil {
		reply := e.service.Perform(r)
		e.identify(r, record, &reply)
		return reply
	}
	reply := service.Answer{Status: http.StatusOK, Header: http.Header{}}
	performed := act.performs(r.Method)
	if performed {
		reply = e.service.Perform(r)
	}
	e.sawPerformed(record, performed)
	if act.Status != 0 {
		if !performed || act.Status >= 300 || reply.Status >= 300 {
			reply = scriptedDefault(act.Status)
		}
		reply.Status = act.Status
	}
	if len(act.Body) > 0 {
		reply.Header.Set("Content-Type", "application/json; charset=utf-8")
		reply.Body = []byte(e.expand(string(act.text()), r))
	}
	e.identify(r, record, &reply)
	for name, values := range act.Headers {
		reply.Header.Del(name)
		for _, value := range values {
			reply.Header.Add(name, e.expand(value, r))
		}
	}
	return reply
}

// identify gives the answer its request id and echoes the client's, as the service does.
func (e *Emulator) identify(r *http.Request, record *Request, reply *service.Answer) {
	if reply.Header == nil {
		reply.Header = http.Header{}
	}
	reply.Header.Set("Request-Id", record.ID)
	if own := r.Header.Get("X-Ms-Client-Request-Id"); own != "" && len(own) <= 128 {
		reply.Header.Set("X-Ms-Client-Request-Id", own)
	}
}

// API versions that the emulated service speaks.
const (
	VersionPreview = service.VersionPreview
	VersionGA      = service.VersionGA
)
