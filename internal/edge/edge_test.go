package edge

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// R39, R106: who may come in, and what goes on. What was sent is gone from the request.
func TestAdmit(t *testing.T) {
	tokens := []config.Token{{Name: "ci", Secret: config.NewSecret("one")}, {Name: "reader", Secret: config.NewSecret("two"), ReadOnly: true}}
	own := map[string]config.Own{"npm": {Private: "Bearer p", Publish: "Bearer w", Mirror: "Bearer m"}}
	closed := Pass{Private: "Bearer p", Publish: "Bearer w", Own: true, OwnPublish: true, Caller: "ci"}
	reader := closed
	reader.Caller, reader.ReadOnly = "reader", true
	for _, c := range []struct {
		access    Access
		ecosystem string
		sent      string
		want      Pass
		says      string // of a refusal
	}{
		{Access{}, "npm", "", Pass{}, ""},
		{Access{}, "npm", "Bearer mine", Pass{Private: "Bearer mine", Publish: "Bearer mine"}, ""},
		{Access{Own: own}, "npm", "Bearer mine", Pass{Private: "Bearer p", Publish: "Bearer mine", Own: true}, ""},
		{Access{Own: own}, "pypi", "Bearer mine", Pass{Private: "Bearer mine", Publish: "Bearer mine"}, ""},
		{Access{Tokens: tokens, Own: own}, "npm", "Bearer one", closed, ""},
		{Access{Tokens: tokens, Own: own}, "npm", "bearer  one ", closed, ""},
		{Access{Tokens: tokens, Own: own}, "npm", basic("any", "two"), reader, ""},
		{Access{Tokens: tokens, Own: own}, "pypi", "Bearer one", Pass{Own: true, OwnPublish: true, Caller: "ci"}, ""},
		{Access{Tokens: tokens, Own: own}, "npm", "", Pass{}, "requires a token"},
		{Access{Tokens: tokens, Own: own}, "npm", "Bearer three", Pass{}, "does not know the token"},
		{Access{Tokens: tokens, Own: own}, "npm", "Bearer p", Pass{}, "does not know the token"},
		{Access{Tokens: tokens, Own: own}, "npm", "Basic !", Pass{}, "does not know the token"},
		{Access{Tokens: tokens, Own: own}, "npm", basic("one", ""), Pass{}, "does not know the token"},
		{Access{Tokens: tokens, Own: own}, "npm", "Digest one", Pass{}, "does not know the token"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if c.sent != "" {
			r.Header.Set("Authorization", c.sent)
			r.Header.Add("Authorization", "Bearer again")
		}
		in, err := New(c.access).Admit(r, c.ecosystem)
		refused, ok := errors.AsType[*Refusal](err)
		if ok != (c.says != "") || ok && !strings.Contains(refused.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.sent, err, c.says)
			continue
		}
		if len(r.Header.Values("Authorization")) != 0 {
			t.Errorf("%q: the request still has %q", c.sent, r.Header)
		}
		if !ok && PassOf(in) != c.want {
			t.Errorf("%q: %+v, want %+v", c.sent, PassOf(in), c.want)
		}
	}
	if r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil); PassOf(r) != (Pass{}) {
		t.Error("a request that was not admitted takes something along")
	}
}

// No word of the field is the name of a scheme, and nothing in it ends the quotes.
func TestChallenge(t *testing.T) {
	const want = `basic realm="a token, bearer of 'bad' news / basic: Gr??e"`
	if got := Challenge("basic", `a token, Bearer of "bad" news \ Basic: Grüße`); got != want {
		t.Errorf("%s\n%s", got, want)
	}
	if got := Challenge("Basic", "no"); got != `Basic realm="no"` {
		t.Error(got)
	}
}
