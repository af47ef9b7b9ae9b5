package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name, file, problem string
		want                int
	}{
		{"two", "# people\nann tok-a\n\nbob\ttok-b\n", "", 2},
		{"no token", "ann\n", "line 1", 0},
		{"three words", "ann tok-a\nbob tok b\n", "line 2", 0},
		{"same name", "ann tok-a\nann tok-b\n", "line 2", 0},
		{"same token", "ann tok-a\nbob tok-a\n", "line 2", 0},
		{"nobody", "# empty\n", "lock everyone out", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := with("auth: {tokensFile: tokens}")
			files := o.ReadFile
			o.ReadFile = func(name string) ([]byte, error) {
				if name == "tokens" {
					return []byte(c.file), nil
				}
				return files(name)
			}
			got, err := config.Load(t.Context(), o)
			if c.problem == "" {
				if err != nil || len(got.Auth.Tokens) != c.want || got.Auth.Tokens[1] != (config.Token{Name: "bob", Secret: config.NewSecret("tok-b")}) {
					t.Errorf("tokens %v, %v", got.Auth.Tokens, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "tok-") {
				t.Errorf("want %q and no token, got %v", c.problem, err)
			}
		})
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	s := config.NewSecret("hunter2")
	shown := fmt.Sprintf("%v %s %q %#v %+v", s, s, s, s, config.Token{Secret: s})
	encoded, err := json.Marshal(config.Token{Name: "a", Secret: s})
	if err != nil || strings.Contains(shown+string(encoded), "hunter2") {
		t.Errorf("the secret shows: %s %s %v", shown, encoded, err)
	}
	if s.Reveal() != "hunter2" {
		t.Error("the secret is lost")
	}
}

func TestCAFile(t *testing.T) {
	for _, c := range []struct{ pem, problem string }{
		{"nonsense", "not a PEM certificate"},
		{"", "not a PEM certificate"},
		{"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "only certificates"},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1"},
	} {
		o := with("egress: {caFile: ca.pem}")
		files := o.ReadFile
		o.ReadFile = func(name string) ([]byte, error) {
			if name == "ca.pem" {
				return []byte(c.pem), nil
			}
			return files(name)
		}
		expect(t, o, "egress.caFile", c.problem)
	}
}

func TestFirstParty(t *testing.T) {
	c := load(t, with("mounts: {npm: {firstParty: ['@acme/*', left-pad]}}"))
	if got := c.Mount("npm").FirstParty; len(got) != 2 || !got[0].MatchPackage("npm", "@acme/x") || !got[1].MatchPackage("npm", "left-pad") {
		t.Errorf("first party = %v", got)
	}
	for _, bad := range []string{"'*'", "left-pad@1.0.0", "'@acme'x"} {
		if p := problems(t, with("mounts: {npm: {firstParty: ["+bad+"]}}")); len(p) == 0 {
			t.Errorf("%s: accepted", bad)
		}
	}
}
