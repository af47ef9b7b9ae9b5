package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/edge"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Bounds of publishing.
const (
	maxPublish      = 512 << 20 // one package, as its protocol packs it
	maxPublications = 8         // at once
)

// publishing is what a mount needs to relay packages. A package is written to the disk first,
// without a name there: nothing of it is sent before the whole has been looked at.
type publishing struct {
	slots chan struct{}
	dir   string
	limit int64
}

func newPublishing(dir string) *publishing {
	return &publishing{slots: make(chan struct{}, maxPublications), dir: dir, limit: maxPublish}
}

// publish relays a package: what was brought is checked, and goes on as it came.
func (m *mount) publish(w http.ResponseWriter, r *http.Request, route string, ask serving.Publish) {
	if !m.gate.Publishes() || r.Method != ask.Method {
		m.noPublishing(w, r, ask)
		return
	}
	// no other server looks at who they are, where the credential is the gate's
	if edge.PassOf(r).ReadOnly {
		m.server.opts.Metrics.Decision(m.Name, "publish", "deny")
		m.refuse(w, r, route, refusal{status: http.StatusForbidden, message: "this token may read and not publish"})
		return
	}
	if ask.Name != "" {
		if err := m.gate.MayPublish(ask.Name); err != nil {
			m.fail(w, r, route, err)
			return
		}
	}
	var early func(io.Reader) error
	if ask.NameOf != nil {
		early = func(body io.Reader) error {
			name, ok := ask.NameOf(body)
			if !ok {
				return nil
			}
			return m.gate.MayPublish(name)
		}
	}
	m.relay(w, r, route, early, func(body io.Reader) (gate.PublishRequest, error) {
		name, err := ask.Check(body)
		if err == nil && ask.Name == "" {
			err = m.gate.MayPublish(name)
		}
		return gate.PublishRequest{Name: name, Path: ask.Path}, err
	})
}

// relay takes a package in, has it checked, and hands it on with the publisher's credential, or
// where callers have tokens of the gate's, with its own. The answer is the target's own. What can
// be judged without the body is judged before any of it is taken, and early judges what it begins
// with; early may be nil.
func (m *mount) relay(
	w http.ResponseWriter, r *http.Request, route string, early func(io.Reader) error, check func(io.Reader) (gate.PublishRequest, error),
) {
	p := m.server.publishing
	if err := p.judge(r); err != nil {
		m.failPublish(w, r, route, err)
		return
	}
	select {
	case p.slots <- struct{}{}:
		leave := sync.OnceFunc(func() { <-p.slots })
		defer leave()
		onStall(w, leave)
	default:
		m.fail(w, r, route, &gate.Unavailable{Wait: busyWait, Reason: "too many packages are being published; try again shortly"})
		return
	}
	body, size, err := p.receive(w, r, early)
	if err != nil {
		m.failPublish(w, r, route, err)
		return
	}
	defer body.Close()
	req, err := check(io.NewSectionReader(body, 0, size))
	if err != nil {
		m.failPublish(w, r, route, err)
		return
	}
	pass := edge.PassOf(r)
	req.Method, req.Header, req.Authorization = r.Method, m.publishHeader(r.Header, pass.OwnPublish), pass.Publish
	req.Body, req.Length = io.NewSectionReader(body, 0, size), size
	// A client that goes away does not stop a write in its middle: what a target took by half,
	// nobody knows.
	a, err := m.gate.Publish(context.WithoutCancel(r.Context()), req)
	if err != nil {
		m.fail(w, r, route, err)
		return
	}
	setRoute(w, route)
	m.server.writeArtifact(w, r, a)
}

// judge refuses what its header alone tells to be in vain. A package without a credential is, where
// the target wants the publisher's own: nobody who has none may keep the others waiting.
func (p *publishing) judge(r *http.Request) error {
	pass := edge.PassOf(r)
	_, credential, _ := strings.Cut(pass.Publish, " ")
	switch {
	case !pass.OwnPublish && strings.TrimSpace(credential) == "":
		return errNoCredential
	case r.ContentLength > p.limit:
		return errTooLarge
	case r.Header.Get("Content-Encoding") != "":
		return errEncoded
	}
	return nil
}

// receive writes a request's body to the disk.
func (p *publishing) receive(w http.ResponseWriter, r *http.Request, early func(io.Reader) error) (f *os.File, size int64, err error) {
	if err := durable.MakeAll(p.dir); err != nil {
		return nil, 0, durable.OfDisk(fmt.Errorf("create the data folder: %w", err))
	}
	if f, err = durable.Scratch(p.dir); err != nil {
		return nil, 0, err
	}
	body, to := http.MaxBytesReader(w, r.Body, p.limit), durable.DiskWriter{To: f}
	if early != nil {
		err = early(io.TeeReader(body, to))
	}
	if err == nil {
		if _, err = io.Copy(to, body); err == nil {
			size, err = f.Seek(0, io.SeekCurrent)
		}
	}
	if err != nil {
		_ = f.Close()
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err = errTooLarge
		} else if r.Context().Err() != nil && !errors.Is(err, errStalled) {
			err = context.Canceled
		}
		return nil, 0, err
	}
	return f, size, nil
}

var (
	errTooLarge     = fmt.Errorf("the package is larger than %d bytes, the most that is relayed", int64(maxPublish))
	errEncoded      = errors.New("the package has a content encoding, which is not supported; send it without")
	errNoCredential = errors.New("the request has no credential; log in to the registry that packages are published to, and try again")
)

// diskWait is when a publisher may try again while the disk takes nothing.
const diskWait = 30 * time.Second

// failPublish answers what is wrong with a package itself; the rest goes the way of all errors.
func (m *mount) failPublish(w http.ResponseWriter, r *http.Request, route string, err error) {
	status := 0
	switch {
	case errors.Is(err, errNoCredential):
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="ecluse"`)
	case errors.Is(err, errStalled):
		status = http.StatusRequestTimeout
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, errEncoded):
		status = http.StatusUnsupportedMediaType
	case is[*serving.BadPackage](err):
		status = http.StatusBadRequest
	case durable.IsDisk(err):
		m.server.opts.Logger.Error("a package could not be taken in", obs.Ecosystem(m.Name), obs.Err(err))
		m.fail(w, r, route, &gate.Unavailable{Wait: diskWait, Reason: "the gate's disk cannot take the package in now"})
		return
	default:
		m.fail(w, r, route, err)
		return
	}
	m.server.opts.Metrics.Decision(m.Name, "publish", "deny")
	m.refuse(w, r, route, refusal{status: status, message: err.Error()})
}

// publishHeader is what a target hears of the publisher's request, beside the body and the
// credential: what the package is, how the publisher's tool calls itself, and a second factor.
func (m *mount) publishHeader(from http.Header, own bool) http.Header {
	names := slices.Concat([]string{"Content-Type", "Accept"}, m.PublishHeader)
	if !own {
		names = append(names, m.PublisherHeader...)
	}
	out := http.Header{}
	for _, name := range names {
		if v := from.Values(name); len(v) > 0 {
			out[name] = v
		}
	}
	return out
}

// busyWait is how long a publisher is asked to wait for a place.
const busyWait = time.Second

// noPublishing refuses to publish where nothing is configured.
func (m *mount) noPublishing(w http.ResponseWriter, r *http.Request, ask serving.Publish) {
	w.Header().Set("Allow", ask.Allow)
	message := r.Method + " is not allowed: publishing through this gate is not configured"
	if m.gate.Publishes() {
		message = r.Method + " is not allowed: send uploads with " + ask.Method
	}
	m.refuse(w, r, "other", refusal{status: http.StatusMethodNotAllowed, message: message})
}
