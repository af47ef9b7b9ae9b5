package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The command says of every shared vector what the library says: kind and delay, exactly.
func TestRetryAfterCommandOnVectors(t *testing.T) {
	f, err := os.Open("../../retryafter/testdata/retry-after-vectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	count := 0
	for lines.Scan() {
		var v struct {
			ID           string       `json:"id"`
			Header       []string     `json:"header"`
			ReceivedAt   string       `json:"received_at"`
			Kind         string       `json:"kind"`
			DelaySeconds *json.Number `json:"delay_seconds"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := play(t, append([]string{"retry-after", "--received-at", v.ReceivedAt, "--json", "--"}, v.Header...)...)
		var got struct {
			Kind         string       `json:"kind"`
			DelaySeconds *json.Number `json:"delay_seconds"`
			Notes        []string     `json:"notes"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || stderr != "" {
			t.Errorf("%s: exit code %d, %v\n%s%s", v.ID, code, err, out, stderr)
			continue
		}
		if got.Kind != v.Kind || text(got.DelaySeconds) != text(v.DelaySeconds) || got.Notes == nil {
			t.Errorf("%s: %q gives %s", v.ID, v.Header, out)
		}
		count++
	}
	if lines.Err() != nil || count < 50 {
		t.Errorf("%d vectors were read, %v", count, lines.Err())
	}
}

func text(n *json.Number) string {
	if n == nil {
		return "null"
	}
	return n.String()
}

// A terminal must never receive what the server sent: the report does not repeat the field.
func TestRetryAfterDoesNotEchoTheField(t *testing.T) {
	_, out, stderr := play(t, "retry-after", "\x1b[31mred")
	if strings.Contains(out+stderr, "\x1b") || strings.Contains(out, "red\n") {
		t.Errorf("the field reaches the terminal: %q %q", out, stderr)
	}
}
