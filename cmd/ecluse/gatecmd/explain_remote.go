package gatecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/gate"
)

// remote is what a running gate answered instead of verdicts.
type remote struct {
	text string
	kind error // of internal/gate where it decides the exit code, else nil
}

// Error implements error.
func (e *remote) Error() string { return e.text }

// Unwrap gives the kind.
func (e *remote) Unwrap() error { return e.kind }

// errNoGate says that nobody answers at an address, or somebody who is no gate.
var errNoGate = errors.New("no gate answers")

// Limits of a question to a running gate.
const (
	greetTime   = 5 * time.Second
	explainTime = 2 * time.Minute // it may have to read a listing
	maxExplain  = 64 << 20
)

// greet finds out whether a gate answers at an address; without one the error is errNoGate.
func greet(ctx context.Context, at, token string) error {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	got, err := adminGet(ctx, at, token, "/api/v1/authorities", maxStatus)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %v", errNoGate, err)
	case got.code == http.StatusUnauthorized:
		return fmt.Errorf("the gate at %s requires a token: name the file of the gate's admin.tokenFile in the configuration, or use --offline", at)
	case got.code != http.StatusOK || json.Unmarshal(got.body, new([]admin.Authority)) != nil:
		return fmt.Errorf("%w: something else does, with %s", errNoGate, got.status)
	}
	return nil
}

// askExplain asks a running gate for its verdicts.
func askExplain(ctx context.Context, at, token, arg string) ([]admin.Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	got, err := adminGet(ctx, at, token, "/api/v1/explain?package="+url.QueryEscape(arg), maxExplain)
	if err != nil {
		return nil, fmt.Errorf("ask the gate at %s: %w", at, err)
	}
	if got.code == http.StatusOK {
		var rows []admin.Explanation
		if err := json.Unmarshal(got.body, &rows); err != nil {
			return nil, fmt.Errorf("ask the gate at %s: its answer is not a list of verdicts: %w", at, err)
		}
		return rows, nil
	}
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(got.body, &said) != nil || said.Error == "" {
		return nil, refused(at, got.status, got.body)
	}
	switch {
	case got.code == http.StatusBadRequest:
		return nil, &cli.ExitError{Code: cli.Usage, Err: errors.New(said.Error)}
	case got.code == http.StatusServiceUnavailable && got.header.Get("Cache-Status") != "":
		return nil, &remote{said.Error, &gate.Unavailable{Cooldown: true}}
	}
	return nil, &remote{said.Error, nil}
}

// answer is what an admin listener said.
type answer struct {
	code   int
	status string
	header http.Header
	body   []byte
}

// adminGet is one question to an admin listener. The body is read, up to a bound.
func adminGet(ctx context.Context, at, token, path string, limit int64) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(withToken(req, token))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	return &answer{resp.StatusCode, resp.Status, resp.Header, body}, err
}
