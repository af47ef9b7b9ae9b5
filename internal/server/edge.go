package server

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/edge"
)

// SetAccess replaces who may use the gate, what refusals add, and the gate's own credentials, all
// at once. Every request that comes from now on is judged by them, also on a connection that is
// open.
func (s *Server) SetAccess(a edge.Access) { s.edge.Store(edge.New(a)) }

// enter refuses callers without a token. It comes before everything that concerns upstreams (R39).
// The request that it returns has no credential any more; edge.PassOf tells what goes on instead.
func (m *mount) enter(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	in, err := m.server.edge.Load().Admit(r, m.Name)
	if refused, ok := errors.AsType[*edge.Refusal](err); ok {
		message := refused.Error() + " (" + m.server.tokenHints + ")"
		w.Header().Set("WWW-Authenticate", edge.Challenge(cmp.Or(m.Refusal.Scheme, "Basic"), m.server.helped(message)))
		m.refuse(w, r, "other", refusal{status: http.StatusUnauthorized, message: message})
		return nil, false
	}
	return in, true
}

// helped is the text of a refusal with what the operator adds to it.
func (s *Server) helped(message string) string {
	if help := s.edge.Load().Help(); help != "" {
		return message + ". " + help
	}
	return message
}
