package search_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search"
)

// source is a token source made of a function.
type source func(ctx context.Context, audience string) (search.Token, error)

func (f source) Token(ctx context.Context, audience string) (search.Token, error) {
	return f(ctx, audience)
}

// jwt makes an unsigned token of claims.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func withTokens(t *testing.T, tokens search.TokenSource, now func() time.Time) *search.Client {
	t.Helper()
	endpoint, err := search.ParseEndpoint("http://127.0.0.1:1", true)
	if err != nil {
		t.Fatal(err)
	}
	client, err := search.New(search.Options{
		Service: search.Service{Endpoint: endpoint, Profile: search.ProfileGA}, Tokens: tokens, Now: now,
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return canned(200, text(`{"seen":"`+r.Header.Get("Authorization")+`"}`))(r)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// S48: only Authenticate asks for a token, for the audience of the service; without it nothing is
// sent.
func TestAuthenticate(t *testing.T) {
	asked := 0
	client := withTokens(t, source(func(_ context.Context, audience string) (search.Token, error) {
		asked++
		if audience != "https://search.azure.com" {
			t.Errorf("audience %q", audience)
		}
		return search.NewToken("t1", time.Time{}), nil
	}), nil)
	if failed := wantCode(t, getManuals(t.Context(), client, search.Bounds{}), search.CodeAuthenticationFailed); failed.Sent || asked != 0 {
		t.Errorf("%+v, asked %d times", failed, asked)
	}
	for range 3 {
		if err := client.Authenticate(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := client.Get(t.Context(), search.Indexes, "i", search.Bounds{})
		if err != nil || got.Definition["seen"] != "Bearer t1" {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// S48: what a source gives must be usable as a token.
func TestUnusableTokens(t *testing.T) {
	for _, value := range []string{"", "a b", "a\r\nX: y", "ü", strings.Repeat("a", search.MaxTokenBytes+1)} {
		client := withTokens(t, search.FixedToken(value), nil)
		wantCode(t, client.Authenticate(t.Context()), search.CodeAuthenticationFailed)
		wantCode(t, getManuals(t.Context(), client, search.Bounds{}), search.CodeAuthenticationFailed)
	}
	secret := errors.New("tenant says: secret")
	client := withTokens(t, source(func(context.Context, string) (search.Token, error) { return search.Token{}, secret }), nil)
	err := client.Authenticate(t.Context())
	wantCode(t, err, search.CodeAuthenticationFailed)
	if !errors.Is(err, secret) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// S48: a source has 60 s; being interrupted by the caller is not a timeout.
func TestTokenTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := source(func(ctx context.Context, _ string) (search.Token, error) {
			<-ctx.Done()
			return search.Token{}, ctx.Err()
		})
		begun := time.Now()
		wantCode(t, withTokens(t, stuck, nil).Authenticate(t.Context()), search.CodeAuthenticationTime)
		if spent := time.Since(begun); spent != time.Minute {
			t.Errorf("gave up after %v", spent)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, withTokens(t, stuck, nil).Authenticate(ctx), search.CodeAuthenticationFailed)
	})
}

// S48: a token that is about to expire is renewed by Authenticate alone, and only for the same
// principal.
func TestRenewal(t *testing.T) {
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	given := search.NewToken(jwt(`{"tid":"t","oid":"me","preferred_username":"me@x"}`), now.Add(10*time.Minute))
	asked := 0
	tokens := source(func(context.Context, string) (search.Token, error) { asked++; return given, nil })
	client := withTokens(t, tokens, func() time.Time { return now })
	authenticate := func(want int) error {
		t.Helper()
		err := client.Authenticate(t.Context())
		if asked != want {
			t.Errorf("asked %d times, want %d", asked, want)
		}
		return err
	}
	if err := authenticate(1); err != nil {
		t.Fatal(err)
	}
	_ = authenticate(1)
	now = now.Add(6 * time.Minute) // less is left than an upload may take
	given = search.NewToken(jwt(`{"tid":"t","oid":"another"}`), now.Add(time.Hour))
	wantCode(t, authenticate(2), search.CodeAuthenticationFailed)
	given = search.NewToken(jwt(`{"tid":"t","oid":"me"}`), now.Add(time.Hour))
	if err := authenticate(3); err != nil {
		t.Fatal(err)
	}
	_ = authenticate(3)
}

// S48: a token prints, logs and encodes as nothing of itself.
func TestTokenIsNotPrinted(t *testing.T) {
	token := search.NewToken("very-secret", time.Time{})
	encoded, err := json.Marshal(map[string]any{"t": token, "p": &token})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %q", token, token, token, token, token), fmt.Sprintf("%+v", &token), string(encoded)} {
		if strings.Contains(s, "very-secret") {
			t.Errorf("printed: %s", s)
		}
	}
}

// Who a token was issued to, as far as it says.
func TestIdentity(t *testing.T) {
	for claims, want := range map[string]search.Identity{
		`{"tid":"t","oid":"o","preferred_username":"me@x"}`: {TenantID: "t", ObjectID: "o", Name: "me@x", Kind: "user"},
		`{"tid":"t","oid":"o","appid":"a","idtyp":"app"}`:   {TenantID: "t", ObjectID: "o", Name: "a", Kind: "servicePrincipal"},
		`{"tid":"t","sub":"s","appid":"a"}`:                 {TenantID: "t", ObjectID: "s", Name: "a", Kind: "servicePrincipal"},
		`nonsense`:                                          {},
	} {
		if got := search.NewToken(jwt(claims), time.Time{}).Identity(); got != want {
			t.Errorf("%s: %+v", claims, got)
		}
	}
	if got := search.NewToken("opaque", time.Time{}).Identity(); got != (search.Identity{}) {
		t.Errorf("opaque: %+v", got)
	}
}
