package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/ecluse-gate/ecluse/internal/payload"
	"github.com/ecluse-gate/ecluse/retryafter"
)

const (
	maxDocument = 128 << 20 // a listing of the target
	maxDetail   = 4 << 10   // what is read of a refusal
	shownDetail = 300
	// longestWish is the longest wait that a target's wish is kept to the second; it only keeps
	// times from wrapping round. A wait is never shortened for our convenience.
	longestWish = 10 * 366 * 24 * time.Hour
)

// answerError types an answer of a target that is not a success.
func answerError(resp *http.Response) error {
	s := resp.StatusCode
	switch {
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		if d, ok := retryafter.ParseHeader(resp.Header, time.Now()).Delay(); ok && d > 0 {
			return &Postponed{Delay: min(d, longestWish), Status: s}
		}
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return fmt.Errorf("the mirror target rejected the credential with %d: %s", s, detail(resp))
	case s >= 300 && s < 500 && s != http.StatusRequestTimeout && s != http.StatusConflict:
		return &Rejected{Status: s, Detail: detail(resp)}
	}
	return fmt.Errorf("the mirror target answered %d: %s", s, detail(resp))
}

// detail is the beginning of a refusal, on one line.
func detail(resp *http.Response) string {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxDetail))
	text := strings.Join(strings.FieldsFunc(string(b), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > shownDetail {
		text = strings.ToValidUTF8(text[:shownDetail], "") + "…"
	}
	return text
}

// ReadListing reads a listing of the target, whose body the caller closes; nil means that there is
// none.
func ReadListing(resp *http.Response) ([]byte, error) {
	switch resp.StatusCode {
	case http.StatusOK:
		return payload.Read(resp, maxDocument)
	case http.StatusNotFound, http.StatusGone:
		return nil, nil
	}
	return nil, answerError(resp)
}

// Settle reads the answer to a write for its target. A refusal that registries also give for what
// they hold already is checked by looking.
func Settle(ctx context.Context, t Target, j Job, resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	refused := answerError(resp)
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict:
		if held, err := t.Holds(ctx, j); err != nil {
			return errors.Join(refused, err)
		} else if held {
			return ErrPresent
		}
	}
	return refused
}
