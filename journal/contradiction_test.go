package journal_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/strictjson"

	"github.com/ecluse-gate/ecluse/journal"
)

// book is a journal in memory whose payloads can be edited; sealing works out every integrity and
// the whole chain anew, as somebody would who wants an edit to go unnoticed.
type book struct {
	t        *testing.T
	payloads map[string]map[string]any
}

func openBook(t *testing.T) *book {
	t.Helper()
	b := &book{t, map[string]map[string]any{}}
	for name, data := range contents(t, withMarker(t)) {
		b.payloads[name] = parse(t, data)["payload"].(map[string]any)
	}
	return b
}

// seal chains the restrictions and wraps everything.
func (b *book) seal() map[string][]byte {
	b.t.Helper()
	files := map[string][]byte{}
	names := make([]string, 0, len(b.payloads))
	for name := range b.payloads {
		names = append(names, name)
	}
	slices.Sort(names)
	var previous any
	for _, name := range names {
		p := b.payloads[name]
		if strings.HasPrefix(name, "backoff-") && p["previous"] != "keep" {
			p["previous"] = previous
		}
		digest, err := strictjson.Digest(p)
		if err != nil {
			b.t.Fatal(err)
		}
		if strings.HasPrefix(name, "backoff-") {
			previous = digest
		}
		data, err := json.Marshal(map[string]any{"schema_version": "1.0", "kind": layout.Kind, "payload": p, "integrity": digest})
		if err != nil {
			b.t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

// event gives the digest that backoff-NNNN.json will have; results refer to it.
func (b *book) event(n int) string {
	b.t.Helper()
	var w struct{ Integrity string }
	if err := json.Unmarshal(b.seal()[journal.Numbered("backoff", n)], &w); err != nil {
		b.t.Fatal(err)
	}
	return w.Integrity
}

func (b *book) copy(from, to string) map[string]any {
	c := map[string]any{}
	maps.Copy(c, b.payloads[from])
	b.payloads[to] = c
	return c
}

func timing(received, notBefore, delay any) map[string]any {
	return map[string]any{"received_at_utc": received, "not_before_utc": notBefore, "server_delay_seconds": delay}
}

// S18, S115, section 14: journals whose every hash is right and whose records contradict each other
// or themselves. Each is refused at the entry and the field where the contradiction is.
func TestContradictions(t *testing.T) {
	const r = int64(1796126460) // when the second restriction was received
	digest := strictjson.DigestBytes([]byte("another"))
	last := func(b *book) map[string]any { return b.payloads["backoff-0001.json"] }
	timed := func(received, notBefore, delay any) func(*book) {
		return func(b *book) {
			last(b)["metadata"], last(b)["timing"] = map[string]any{"delay": delay}, timing(received, notBefore, delay)
		}
	}
	for name, tt := range map[string]struct {
		edit         func(b *book)
		entry, field string // "" means that the journal is sound
	}{
		"nothing edited":                {func(*book) {}, "", ""},
		"a delay":                       {timed(r, r+30, int64(30)), "", ""},
		"a receipt with a fraction":     {timed(r, r+6, int64(5)), "", ""},
		"a delay below zero":            {timed(r, r-1, int64(-1)), "backoff-0001.json", "timing.server_delay_seconds"},
		"a delay without end":           {timed(r, nil, int64(5)), "backoff-0001.json", "timing.not_before_utc"},
		"end too early":                 {timed(r, r+4, int64(5)), "backoff-0001.json", "timing.not_before_utc"},
		"end too late":                  {timed(r, r+7, int64(5)), "backoff-0001.json", "timing.not_before_utc"},
		"a delay, shortened":            {timed(r, r+31, int64(60)), "backoff-0001.json", "timing.not_before_utc"},
		"a wrapping delay":              {timed(r, r-1, int64(9007199254740991)), "backoff-0001.json", "timing.not_before_utc"},
		"no delay named":                {timed(r, r+1, nil), "", ""},
		"an end before the receipt":     {timed(r, r-90, nil), "", ""},
		"no end known":                  {timed(r, nil, nil), "", ""},
		"end beyond the year 9999":      {timed(int64(253402300799), int64(253402300804), int64(5)), "backoff-0001.json", "timing"},
		"receipt before the year 1":     {timed(int64(-62135596801), int64(-62135596796), int64(5)), "backoff-0001.json", "timing"},
		"no receipt, no end":            {timed(nil, nil, nil), "", ""},
		"no receipt, an end":            {timed(nil, r, int64(5)), "backoff-0001.json", "timing"},
		"no metadata":                   {func(b *book) { last(b)["metadata"] = nil }, "backoff-0001.json", "metadata"},
		"a list as metadata":            {func(b *book) { last(b)["metadata"] = []any{} }, "backoff-0001.json", "metadata"},
		"what the layout does not know": {func(b *book) { last(b)["origin"] = "guess" }, "backoff-0001.json", "origin"},
		"what the layout refutes":       {func(b *book) { last(b)["metadata"] = map[string]any{"delay": 1} }, "backoff-0001.json", "metadata.delay"},
		"reviewed by nobody":            {func(b *book) { last(b)["origin"] = "operator-review" }, "backoff-0001.json", "review"},
		"a review of a server's answer": {func(b *book) { last(b)["review"] = map[string]any{"outcome": "applied", "approval": digest} }, "backoff-0001.json", "review"},
		"a version to come":             {func(b *book) { last(b)["version"] = "1.1" }, "backoff-0001.json", "version"},
		"another plan":                  {func(b *book) { last(b)["plan_digest"] = digest }, "backoff-0001.json", "plan_digest"},
		"another plan's marker":         {func(b *book) { b.payloads["pending-request.json"]["plan_digest"] = digest }, "pending-request.json", "plan_digest"},
		"a marker to come":              {func(b *book) { b.payloads["pending-request.json"]["version"] = "2" }, "pending-request.json", "version"},
		"a marker for DELETE":           {func(b *book) { b.payloads["pending-request.json"]["method"] = "DELETE" }, "pending-request.json", "method"},
		"a marker with a bare URL":      {func(b *book) { b.payloads["pending-request.json"]["url_digest"] = listURL }, "pending-request.json", "url_digest"},
		"a marker with a short nonce":   {func(b *book) { b.payloads["pending-request.json"]["nonce"] = "12" }, "pending-request.json", "nonce"},
		"a restriction of DELETE":       {func(b *book) { last(b)["method"] = "DELETE" }, "backoff-0001.json", "method"},
		"a restriction of a bare URL":   {func(b *book) { last(b)["url_digest"] = listURL }, "backoff-0001.json", "url_digest"},
		"an unsafe identifier":          {func(b *book) { last(b)["request_id"] = "a b" }, "backoff-0001.json", "request_id"},
		"a withheld identifier":         {func(b *book) { last(b)["request_id"] = "[withheld]" }, "", ""},
		"no nonce":                      {func(b *book) { last(b)["nonce"] = nil }, "backoff-0001.json", "nonce"},
		"upper-case nonce":              {func(b *book) { last(b)["nonce"] = strings.Repeat("A", 32) }, "backoff-0001.json", "nonce"},
		"an attempt without digest":     {func(b *book) { last(b)["attempt"] = "attempt-0000.json" }, "backoff-0001.json", "attempt"},
		"an attempt of a GET": {func(b *book) {
			last(b)["attempt"], last(b)["attempt_digest"] = "attempt-0000.json", digest
		}, "backoff-0001.json", "attempt"},
		"an attempt that is not there": {func(b *book) {
			last(b)["method"], last(b)["attempt"], last(b)["attempt_digest"] = "POST", "attempt-0009.json", digest
		}, "backoff-0001.json", "attempt"},
		"an attempt that is none": {func(b *book) {
			last(b)["method"], last(b)["attempt"], last(b)["attempt_digest"] = "POST", "source-ack.json", digest
		}, "backoff-0001.json", "attempt"},
		"an attempt with another digest": {func(b *book) {
			last(b)["method"], last(b)["attempt"], last(b)["attempt_digest"] = "POST", "attempt-0000.json", digest
		}, "backoff-0001.json", "attempt_digest"},
		"two restrictions of one attempt": {func(b *book) {
			first := b.payloads["backoff-0000.json"]
			last(b)["method"], last(b)["attempt"], last(b)["attempt_digest"] = "POST", first["attempt"], first["attempt_digest"]
		}, "backoff-0001.json", "attempt"},
		"another address than the attempt": {func(b *book) {
			b.payloads["backoff-0000.json"]["url_digest"] = digest
			b.payloads["result-0001.json"]["throttle_event"] = b.event(0)
		}, "backoff-0000.json", "url_digest"},
		"a result with another identifier": {func(b *book) { b.payloads["result-0001.json"]["request_id"] = "id2" }, "result-0001.json", "throttle_event"},
		"a result of another request": {func(b *book) {
			b.payloads["result-0001.json"]["nonce"] = strings.Repeat("1", 32)
		}, "result-0001.json", "throttle_event"},
		"a result of another restriction": {func(b *book) { b.payloads["result-0001.json"]["throttle_event"] = b.event(1) }, "result-0001.json", "throttle_event"},
		"a result of no restriction":      {func(b *book) { b.payloads["result-0001.json"]["throttle_event"] = nil }, "result-0001.json", "throttle_event"},
		"a success with a restriction":    {func(b *book) { b.payloads["result-0001.json"]["status"] = 201 }, "result-0001.json", "throttle_event"},
		"a 429 without its restriction":   {func(b *book) { b.payloads["result-0000.json"]["status"] = 429 }, "result-0000.json", "throttle_event"},
		"two results of one request": {func(b *book) {
			b.payloads["attempt-0002.json"] = map[string]any{"plan_digest": planDigest(), "number": 2}
			b.copy("result-0000.json", "result-0002.json")
		}, "result-0002.json", "nonce"},
		"two restrictions of one request": {func(b *book) { last(b)["nonce"] = b.payloads["backoff-0000.json"]["nonce"] }, "backoff-0001.json", "nonce"},
		"a success with a restriction's nonce": {func(b *book) {
			b.payloads["result-0000.json"]["nonce"] = last(b)["nonce"]
		}, "result-0000.json", "nonce"},
		"a marker of a finished request elsewhere": {func(b *book) {
			b.payloads["pending-request.json"]["nonce"] = last(b)["nonce"]
			b.payloads["pending-request.json"]["url_digest"] = digest
		}, "backoff-0001.json", "nonce"},
		"a result without attempt": {func(b *book) {
			b.copy("result-0000.json", "result-0005.json")["nonce"] = strings.Repeat("5", 32)
		}, "result-0005.json", ""},
		"a gap in the restrictions": {func(b *book) {
			b.copy("backoff-0001.json", "backoff-0003.json")["nonce"] = strings.Repeat("5", 32)
		}, "backoff-0003.json", ""},
		"a broken chain":         {func(b *book) { last(b)["previous"] = "keep" }, "backoff-0001.json", "previous"},
		"a nonce that is no hex": {func(b *book) { b.payloads["result-0000.json"]["nonce"] = "xyz" }, "result-0000.json", "nonce"},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBook(t)
			tt.edit(b)
			_, faults, err := journal.Files(b.seal()).Inspect(layout)
			if err != nil {
				t.Fatal(err)
			}
			if tt.entry == "" {
				if len(faults) > 0 {
					t.Errorf("refused: %v", faults[0])
				}
				return
			}
			var all []string
			for _, f := range faults {
				if f.Entry == tt.entry && f.Field == tt.field && f.FullCode() == invalid {
					return
				}
				all = append(all, fmt.Sprintf("%s at %s %s", f.FullCode(), f.Entry, f.Field))
			}
			t.Errorf("no fault at %s %s, but %q", tt.entry, tt.field, all)
		})
	}
}
