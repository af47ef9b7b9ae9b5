// Package edge says who may use the mounts, and what a request may take along to the registries
// behind them. A credential that a client sends ends here: it is a token of the gate's, or it is
// handed on by name (R106).
package edge

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// Access is what may change while the gate serves.
type Access struct {
	// Tokens are who may use the mounts; none means everybody.
	Tokens []config.Token
	// HelpMessage is added to every refusal.
	HelpMessage string
	// Own are the gate's own credentials for the registries behind each mount, by ecosystem.
	Own map[string]config.Own
}

// Edge is an Access as requests need it. Tokens are kept as digests and compared in constant time.
// It is safe for concurrent use.
type Edge struct {
	access  Access // without the tokens' secrets
	digests [][sha256.Size]byte
}

// New returns an Edge.
func New(a Access) *Edge {
	e := &Edge{access: a}
	e.access.Tokens = nil
	for _, t := range a.Tokens {
		e.access.Tokens = append(e.access.Tokens, config.Token{Name: t.Name, ReadOnly: t.ReadOnly})
		e.digests = append(e.digests, sha256.Sum256([]byte(t.Secret.Reveal())))
	}
	return e
}

// Help is what every refusal says at its end.
func (e *Edge) Help() string { return e.access.HelpMessage }

// Pass is what a request may take along, each as the value of an Authorization field. The zero Pass
// takes nothing.
type Pass struct {
	Private string // for reads of the private registry
	Publish string // for publications
	// Own and OwnPublish tell that it is the gate's own or none, and not the caller's.
	Own, OwnPublish bool
	// Caller is the name of the caller's token; empty where the gate is open to everybody.
	Caller string
	// ReadOnly tells that the caller may not publish.
	ReadOnly bool
}

type passKey struct{}

// PassOf is what a request may take along: nothing if it did not come through Admit.
func PassOf(r *http.Request) Pass {
	p, _ := r.Context().Value(passKey{}).(Pass)
	return p
}

// Refusal is why a caller may not use the gate.
type Refusal struct {
	// Unknown tells that something was sent, and that it is no token of the gate's.
	Unknown bool
}

// Error implements error.
func (e *Refusal) Error() string {
	if e.Unknown {
		return "this gate does not know the token that was sent"
	}
	return "this gate requires a token"
}

// Admit lets a request in, or gives a *Refusal. The request that it returns has no Authorization
// any more, and PassOf tells what goes on instead.
func (e *Edge) Admit(r *http.Request, ecosystem string) (*http.Request, error) {
	sent, own := r.Header.Get("Authorization"), e.access.Own[ecosystem]
	r.Header.Del("Authorization")
	p := Pass{Private: own.Private, Publish: own.Publish, Own: true, OwnPublish: true}
	if len(e.digests) == 0 { // open to everybody
		p.Publish, p.OwnPublish = sent, false
		if own.Private == "" {
			p.Private, p.Own = sent, false
		}
	} else {
		token, ok := e.caller(sent)
		if !ok {
			return nil, &Refusal{Unknown: sent != ""}
		}
		p.Caller, p.ReadOnly = token.Name, token.ReadOnly
	}
	return r.WithContext(context.WithValue(r.Context(), passKey{}, p)), nil
}

// caller finds the token that an Authorization field carries: a bearer token, or the password of a
// basic login.
func (e *Edge) caller(authorization string) (t config.Token, ok bool) {
	scheme, credential, _ := strings.Cut(authorization, " ")
	token := ""
	switch strings.ToLower(scheme) {
	case "bearer":
		token = strings.TrimSpace(credential)
	case "basic":
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credential))
		if err != nil {
			return t, false
		}
		_, token, _ = strings.Cut(string(raw), ":")
	}
	if token == "" {
		return t, false
	}
	digest := sha256.Sum256([]byte(token))
	for i := range e.digests { // all of them, so that time tells nothing
		if subtle.ConstantTimeCompare(digest[:], e.digests[i][:]) == 1 {
			t, ok = e.access.Tokens[i], true
		}
	}
	return t, ok
}

// Challenge is a WWW-Authenticate field that asks for a token with a text. The text is made one
// that fits between its quotes, and has no word that is the name of a scheme: a client may look for
// those in the whole field.
func Challenge(scheme, text string) string {
	text = strings.NewReplacer(`"`, "'", `\`, "/", "Basic", "basic", "Bearer", "bearer").Replace(text)
	return scheme + ` realm="` + strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text) + `"`
}
