package search

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/requestid"
)

// Audiences of tokens (S48).
const (
	SearchAudience     = "https://search.azure.com"
	ManagementAudience = "https://management.azure.com"
	StorageAudience    = "https://storage.azure.com/"
)

const (
	tokenTimeout = 60 * time.Second // S48
	// MaxTokenBytes is the longest token accepted.
	MaxTokenBytes = 32 << 10
)

// TokenSource gives bearer tokens. Implementations are safe for concurrent use and end with the
// context.
type TokenSource interface {
	// Token gives a token for an audience. Errors are *Error with one of the authentication codes;
	// a source outside this package may return any error.
	Token(ctx context.Context, audience string) (Token, error)
}

// Token is a bearer token. It prints, logs and encodes as [withheld].
type Token struct {
	value string
	// Expires is when the token ends; zero when the source does not say.
	Expires time.Time
}

// NewToken wraps a token of the given text.
func NewToken(text string, expires time.Time) Token { return Token{value: text, Expires: expires} }

// String keeps the token out of texts.
func (Token) String() string { return requestid.Withheld }

// GoString keeps the token out of %#v.
func (Token) GoString() string { return requestid.Withheld }

// MarshalText keeps the token out of encodings.
func (Token) MarshalText() ([]byte, error) { return []byte(requestid.Withheld), nil }

// Identity is whom a token was issued to, as its claims say. The claims are not verified: they are
// for records and comparisons, never for authorization. All fields are empty for an opaque token.
type Identity struct {
	TenantID, ObjectID, Name string
	Kind                     string // "user", "servicePrincipal" or ""
}

func (i Identity) differs(other Identity) bool {
	return i.TenantID != other.TenantID || i.ObjectID != other.ObjectID
}

// Identity reads the claims of the token.
func (t Token) Identity() Identity {
	parts := strings.Split(t.value, ".")
	if len(parts) != 3 {
		return Identity{}
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return Identity{}
	}
	var claims struct {
		Tenant    string `json:"tid"`
		Object    string `json:"oid"`
		Subject   string `json:"sub"`
		Preferred string `json:"preferred_username"`
		Unique    string `json:"unique_name"`
		App       string `json:"appid"`
		Kind      string `json:"idtyp"`
	}
	if json.Unmarshal(data, &claims) != nil {
		return Identity{}
	}
	who := Identity{TenantID: claims.Tenant, ObjectID: firstOf(claims.Object, claims.Subject), Kind: "user"}
	who.Name = firstOf(claims.Preferred, claims.Unique)
	if claims.Kind == "app" || (who.Name == "" && claims.App != "") {
		who.Kind, who.Name = "servicePrincipal", firstOf(claims.App, who.Name)
	}
	return who
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// acquire asks a source within the 60 s of S48 and checks what it gave.
func acquire(ctx context.Context, source TokenSource, audience string) (Token, error) {
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, err := source.Token(limited, audience)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return Token{}, &Error{Code: CodeAuthenticationTime, Err: err}
		}
		if own, ok := errors.AsType[*Error](err); ok {
			return Token{}, own
		}
		return Token{}, &Error{Code: CodeAuthenticationFailed, Err: err}
	}
	if !sendable(token.value) {
		return Token{}, &Error{Code: CodeAuthenticationFailed, Err: Reason("the token is empty or not a valid header value")}
	}
	return token, nil
}

// sendable keeps anything out of the header that could end it or begin another.
func sendable(value string) bool {
	if value == "" || len(value) > MaxTokenBytes {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// FixedToken always gives the same token. With the emulator's token it is what --emulator uses.
func FixedToken(text string) TokenSource { return fixedToken(text) }

type fixedToken string

func (f fixedToken) Token(context.Context, string) (Token, error) {
	return Token{value: string(f)}, nil
}
