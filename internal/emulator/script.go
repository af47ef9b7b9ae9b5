package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator/service"
)

const (
	maxScriptBytes = 4 << 20
	maxRules       = 1000
	maxDelay       = time.Hour
)

// Rule says what to do with the requests that it matches.
type Rule struct {
	Match Match `json:"match"`
	Act   Act   `json:"act"`
}

// Match selects requests. An empty field matches everything.
type Match struct {
	Method string `json:"method,omitempty"`
	// Path is a regular expression searched in the decoded path, and in path?query.
	Path string `json:"path,omitempty"`
	// Nth picks one request: the first match since the script was set is 1. Zero means every match.
	Nth int `json:"nth,omitempty"`
}

// Act bends the answer. Fields that are absent leave the true answer as it is.
//
// With a status, a body or a reset the request is not performed unless Store is true; a Store of
// false also keeps a plain delayed write from being performed. Reads are performed unless a status
// or body replaces the answer.
type Act struct {
	// Status replaces the status. An error status without a body answers an error with an empty
	// code.
	Status int `json:"status,omitempty"`
	// Headers are set on the answer; a list makes duplicate lines, null removes a header.
	// Texts may use {{base}}, {{path}}, {{query}}, {{date+N}} and {{rfc850+N}} (N seconds from now,
	// or -N).
	Headers map[string]Values `json:"headers,omitempty"`
	// Body replaces the body: a JSON string is sent as its text, anything else as JSON. Templates
	// as in Headers.
	Body json.RawMessage `json:"body,omitempty"`
	// DelayMS waits before the answer, after the request was read and performed, in milliseconds.
	DelayMS int `json:"delay_ms,omitempty"`
	// TrickleMS waits before each byte of the body, in milliseconds.
	TrickleMS int `json:"trickle_ms,omitempty"`
	// Reset breaks the connection: before-headers, after-headers (a body was announced), or
	// after-body (the answer is whole).
	Reset string `json:"reset,omitempty"`
	// Store true performs a write and lies about it; false does not perform it and lies about that.
	Store *bool `json:"store,omitempty"`
}

// Values are the lines of one header: a JSON string, a list of strings, or null for none.
type Values []string

// UnmarshalJSON reads a string, a list of strings, or null.
func (v *Values) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil && !bytes.Equal(data, []byte("null")) {
		*v = Values{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return errors.New("a header is a string, a list of strings, or null")
	}
	*v = many
	return nil
}

// ParseScript reads a script: a JSON list of rules, at most 4 MiB, unknown fields refused.
func ParseScript(r io.Reader) ([]Rule, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxScriptBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read script: %v", err)
	}
	if len(data) > maxScriptBytes {
		return nil, errors.New("read script: larger than 4 MiB")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	rules := []Rule{}
	if err := decoder.Decode(&rules); err != nil {
		return nil, fmt.Errorf("read script: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read script: trailing data after the list of rules")
	}
	if _, err := compile(rules); err != nil {
		return nil, err
	}
	return rules, nil
}

// SetScript replaces the script and resets its counters. Every rule counts each request that it
// matches; the first rule in order whose turn it is decides.
func (e *Emulator) SetScript(rules []Rule) error {
	live, err := compile(rules)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script = live
	return nil
}

// liveRule is a rule with its compiled expression and its count of matches (guarded by
// Emulator.mu).
type liveRule struct {
	rule Rule
	path *regexp.Regexp
	seen int
}

func compile(rules []Rule) ([]*liveRule, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("script: %d rules, at most %d are allowed", len(rules), maxRules)
	}
	live := make([]*liveRule, 0, len(rules))
	for i, rule := range rules {
		if err := rule.check(); err != nil {
			return nil, fmt.Errorf("script rule %d: %v", i+1, err)
		}
		path, err := regexp.Compile(rule.Match.Path)
		if err != nil {
			return nil, fmt.Errorf("script rule %d: path: %v", i+1, err)
		}
		live = append(live, &liveRule{rule: rule, path: path})
	}
	return live, nil
}

func (r Rule) check() error {
	limit := int(maxDelay / time.Millisecond)
	switch {
	case r.Match.Nth < 0:
		return errors.New("nth is negative")
	case r.Act.Status != 0 && (r.Act.Status < 200 || r.Act.Status > 599):
		return fmt.Errorf("status %d is not between 200 and 599", r.Act.Status)
	case r.Act.DelayMS < 0 || r.Act.DelayMS > limit || r.Act.TrickleMS < 0 || r.Act.TrickleMS > limit:
		return errors.New("delay_ms and trickle_ms must be between 0 and one hour")
	}
	switch r.Act.Reset {
	case "", "before-headers", "after-headers", "after-body":
		return nil
	}
	return fmt.Errorf("reset %q: use before-headers, after-headers or after-body", r.Act.Reset)
}

// match counts the request against every rule and gives the act whose turn it is, or nil.
func (e *Emulator) match(r *http.Request) *Act {
	e.mu.Lock()
	defer e.mu.Unlock()
	var chosen *Act
	for _, live := range e.script {
		if !live.matches(r) {
			continue
		}
		live.seen++
		if chosen == nil && (live.rule.Match.Nth == 0 || live.rule.Match.Nth == live.seen) {
			chosen = &live.rule.Act
		}
	}
	return chosen
}

func (l *liveRule) matches(r *http.Request) bool {
	if l.rule.Match.Method != "" && !strings.EqualFold(l.rule.Match.Method, r.Method) {
		return false
	}
	return l.path.MatchString(r.URL.Path) || l.path.MatchString(r.URL.Path+"?"+r.URL.RawQuery)
}

func (a *Act) performs(method string) bool {
	if a.Store != nil {
		return *a.Store
	}
	if a.Status != 0 || len(a.Body) > 0 {
		return false
	}
	return a.Reset == "" || method == http.MethodGet || method == http.MethodHead
}

// text gives the body to send: the content of a JSON string, or the JSON itself.
func (a *Act) text() []byte {
	var s string
	if json.Unmarshal(a.Body, &s) == nil {
		return []byte(s)
	}
	return a.Body
}

func scriptedDefault(status int) service.Answer {
	if status >= 400 {
		return service.Refuse(status, "", http.StatusText(status))
	}
	return service.Answer{Status: status, Header: http.Header{}}
}

// expand fills the templates of a scripted text.
func (e *Emulator) expand(text string, r *http.Request) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	out := strings.NewReplacer("{{base}}", e.service.Base(r), "{{path}}", r.URL.EscapedPath(), "{{query}}", r.URL.RawQuery).Replace(text)
	now := e.now()
	return dateTemplate().ReplaceAllStringFunc(out, func(found string) string {
		parts := dateTemplate().FindStringSubmatch(found)
		seconds, _ := strconv.Atoi(parts[2])
		at := now.Add(time.Duration(seconds) * time.Second)
		if parts[1] == "rfc850" {
			return at.Format("Monday, 02-Jan-06 15:04:05 GMT")
		}
		return at.Format(http.TimeFormat)
	})
}

func dateTemplate() *regexp.Regexp { return regexp.MustCompile(`\{\{(date|rfc850)([+-]\d{1,9})\}\}`) }
