package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/edge"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/payload"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// maxQuestion bounds what an audit is asked, unpacked.
const maxQuestion = 8 << 20

// answer writes what a service said, or why it did not. It is JSON, since no protocol has another
// form of it.
func (m *mount) answer(w http.ResponseWriter, r *http.Request, route string, body []byte, err error) {
	if err != nil {
		m.fail(w, r, route, err)
		return
	}
	setRoute(w, route)
	w.Header().Set("Cache-Control", "private, no-cache")
	m.write(w, r, http.StatusOK, "application/json", body)
}

// search asks the public registry, and takes out of its answer what the gate would not serve.
func (m *mount) search(ctx context.Context, ask serving.Search) ([]byte, error) {
	body, err := m.gate.Service(ctx, gate.ServiceRequest{What: "the search service", Path: ask.Path, Names: ask.Names})
	if err != nil {
		return nil, err
	}
	if body, err = ask.Filter(body, m.gate.Shown); err != nil {
		return nil, &gate.BadUpstream{Reason: fmt.Sprintf("the public registry sent an unusable answer to a search: %v", err)}
	}
	return body, nil
}

// audit answers what is known against what a client has.
func (m *mount) audit(w http.ResponseWriter, r *http.Request, route string, ask serving.Audit) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		m.refuse(w, r, route, refusal{status: http.StatusMethodNotAllowed, message: "send the question of an audit with POST"})
		return
	}
	body, err := m.findings(r, ask)
	m.answer(w, r, route, body, err)
}

func (m *mount) findings(r *http.Request, ask serving.Audit) ([]byte, error) {
	body, err := question(r)
	if err != nil {
		return nil, err
	}
	q, err := ask.Parse(body)
	if err != nil {
		return nil, &refusedError{http.StatusBadRequest, fmt.Sprintf("the question of the audit cannot be read: %v", err)}
	}
	found, body, err := m.gate.Audit(r.Context(), gate.AuditRequest{Versions: q.Versions, Path: ask.Path, Body: ask.Body})
	if err != nil {
		return nil, err
	}
	if body == nil {
		return q.Own(found), nil
	}
	if body, err = q.Relayed(body); err != nil {
		return nil, &gate.BadUpstream{Reason: fmt.Sprintf("the public registry sent an unusable answer to an audit: %v", err)}
	}
	return body, nil
}

// question reads the body of a request, which may be packed.
func question(r *http.Request) ([]byte, error) {
	body, err := payload.Read(&http.Response{Header: r.Header, Body: r.Body, ContentLength: r.ContentLength}, maxQuestion)
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, registry.ErrTooLarge):
		return nil, &refusedError{http.StatusRequestEntityTooLarge, "the question of the audit is too large: " + err.Error()}
	case errors.Is(err, errStalled):
		return nil, &refusedError{http.StatusRequestTimeout, err.Error()}
	case r.Context().Err() != nil:
		return nil, context.Canceled
	}
	return nil, &refusedError{http.StatusBadRequest, "the question of the audit cannot be read: " + err.Error()}
}

// refusedError refuses a request for what it is.
type refusedError struct {
	status  int
	message string
}

// Error implements error.
func (e *refusedError) Error() string { return e.message }

// change relays a request about a first-party package to the publication target, whose own answer
// it gets. Whatever else there is gets 405: clients take 404 for "already gone", and repeat what
// ends with 5xx.
func (m *mount) change(w http.ResponseWriter, r *http.Request, route string, ask serving.Change) {
	message := ask.Message
	switch {
	case ask.Name == "":
	case !m.gate.Publishes():
		message += "; publishing through this gate is not configured"
	case m.gate.MayPublish(ask.Name) != nil:
		message += "; this gate passes it on for first-party names (mounts.*.firstParty) only"
	case edge.PassOf(r).ReadOnly:
		m.refuse(w, r, route, refusal{status: http.StatusForbidden, message: "this token may read and not publish"})
		return
	default:
		m.relay(w, r, route, nil, func(body io.Reader) (req gate.PublishRequest, err error) {
			if ask.Check != nil {
				err = ask.Check(body)
			}
			return gate.PublishRequest{Name: ask.Name, Path: ask.Path}, err
		})
		return
	}
	w.Header().Set("Allow", "")
	m.refuse(w, r, route, refusal{status: http.StatusMethodNotAllowed, message: message})
}

// caller tells who the caller is: the holder of one of the gate's tokens, or who the publication
// target says.
func (m *mount) caller(w http.ResponseWriter, r *http.Request, route string, ask serving.Caller) {
	pass := edge.PassOf(r)
	switch {
	case !m.readOnly(w, r):
	case pass.Caller != "":
		m.answer(w, r, route, ask.Render(pass.Caller), nil)
	case m.gate.Publishes() && !pass.OwnPublish:
		m.relay(w, r, route, nil, func(io.Reader) (gate.PublishRequest, error) {
			return gate.PublishRequest{Name: "the question", Path: ask.Path}, nil
		})
	default:
		w.Header().Set("Allow", "")
		m.refuse(w, r, route, refusal{status: http.StatusMethodNotAllowed, message: "this gate knows no users: it has no tokens of its own"})
	}
}
