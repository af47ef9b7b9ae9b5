package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// access is what may change while the server serves: who may use it, and what refusals add.
type access struct {
	edge *edge
	help string
}

// SetAccess replaces the tokens and the help message. Every request that comes from now on is
// judged by them, also on a connection that is open.
func (s *Server) SetAccess(tokens []config.Token, help string) {
	s.access.Store(&access{edge: newEdge(tokens), help: help})
}

// edge knows who may use the gate. Tokens are kept as digests and compared in constant time.
type edge struct {
	names   []string
	digests [][sha256.Size]byte
}

func newEdge(tokens []config.Token) *edge {
	e := &edge{}
	for _, t := range tokens {
		e.names = append(e.names, t.Name)
		e.digests = append(e.digests, sha256.Sum256([]byte(t.Secret.Reveal())))
	}
	return e
}

// open reports whether everybody may use the gate.
func (e *edge) open() bool { return len(e.names) == 0 }

// caller names the holder of a request's token: a bearer token as npm sends it, or a basic password
// as pip does.
func (e *edge) caller(r *http.Request) (name string, ok bool) {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token := ""
	switch strings.ToLower(scheme) {
	case "bearer":
		token = strings.TrimSpace(credential)
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credential))
		if err != nil {
			return "", false
		}
		_, token, _ = strings.Cut(string(raw), ":")
	}
	if token == "" {
		return "", false
	}
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range e.digests { // all of them, so that time tells nothing
		if subtle.ConstantTimeCompare(digest[:], e.digests[i][:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return "", false
	}
	return e.names[found], true
}

// enter refuses callers without a token. It comes before everything that concerns upstreams (R39).
func (m *mount) enter(w http.ResponseWriter, r *http.Request) bool {
	e := m.server.access.Load().edge
	if e.open() {
		return true
	}
	if _, ok := e.caller(r); ok {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="ecluse"`)
	m.refuse(w, r, "other", refusal{status: http.StatusUnauthorized, message: "this gate requires a token (" + m.server.tokenHints + ")"})
	return false
}
