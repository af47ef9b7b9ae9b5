package emulator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator"
	"github.com/ecluse-gate/ecluse/internal/emulator/emulatortest"
)

// Which rule decides: method, path with and without query, and whose turn it is.
func TestMatching(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	s.script(`[
		{"match":{"method":"get","path":"/files","nth":2},"act":{"status":502}},
		{"match":{"path":"skiptoken=x"},"act":{"status":503}},
		{"match":{"method":"GET","path":"/files$","nth":2},"act":{"status":504}},
		{"match":{"method":"GET","path":"^/knowledgesources\\('manuals'\\)$"},"act":{"status":429}}]`)
	for i, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", filesOf("manuals"), 200},
		{"GET", filesOf("manuals"), 502}, // the first rule in order whose turn it is
		{"GET", filesOf("manuals"), 200}, // the third rule's second match has passed
		{"GET", filesOf("manuals") + "&$skiptoken=x", 503},
		{"GET", at("manuals"), 429},
		{"GET", "/knowledgesources(%27manuals%27)?" + version, 429},
		{"DELETE", at("manuals"), 204},
		{"GET", at("manuals"), 429},
	} {
		if got := s.do(c.method, c.path, ""); got.status != c.status {
			t.Errorf("request %d: %s %s: %d, want %d", i+1, c.method, c.path, got.status, c.status)
		}
	}
	s.script(`[]`)
	if got := s.do("GET", at("manuals"), ""); got.status != 404 {
		t.Errorf("after an empty script: %d", got.status)
	}
}

// Headers, bodies, templates.
func TestActs(t *testing.T) {
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	s := start(t, emulator.Options{Now: func() time.Time { return now }})
	s.createFileSource("manuals")
	for _, c := range []struct {
		act    string
		status int
		body   string // "" = not compared
		header string
		values []string
	}{
		{`{"headers":{"Retry-After":["5","5"]}}`, 200, "", "Retry-After", []string{"5", "5"}},
		{`{"headers":{"ETag":["\"a\"","\"b\""]}}`, 200, "", "ETag", []string{`"a"`, `"b"`}},
		{`{"headers":{"ETag":null}}`, 200, "", "ETag", nil},
		{`{"headers":{"request-id":null}}`, 200, "", "request-id", nil},
		{`{"headers":{"request-id":"bad id"}}`, 200, "", "request-id", []string{"bad id"}},
		{`{"status":429}`, 429, `{"error":{"code":"","message":"Too Many Requests"}}`, "ETag", nil},
		{`{"status":429,"headers":{"Retry-After":"{{date+90}}"}}`, 429, "", "Retry-After", []string{"Mon, 02 Nov 2026 12:01:30 GMT"}},
		{`{"status":429,"headers":{"Retry-After":"{{rfc850-60}}"}}`, 429, "", "Retry-After", []string{"Monday, 02-Nov-26 11:59:00 GMT"}},
		{`{"status":307,"headers":{"Location":"{{base}}{{path}}?{{query}}"}}`, 307, "", "Location", []string{s.server.URL + at("manuals")}},
		{`{"body":{"value":1}}`, 200, `{"value":1}`, "ETag", nil},
		{`{"body":"{\"cut"}`, 200, `{"cut`, "Content-Length", []string{"5"}},
		{`{"body":"at {{base}}"}`, 200, "at " + s.server.URL, "", nil},
		{`{"status":204}`, 204, "", "ETag", nil},
		{`{}`, 200, "", "ETag", []string{`"0x8DEC1A5E0000001"`}},
	} {
		s.script(`[{"match":{},"act":` + c.act + `}]`)
		got := s.do("GET", at("manuals"), "")
		if got.status != c.status || (c.body != "" && string(got.raw) != c.body) {
			t.Errorf("%s: %d %s", c.act, got.status, got.raw)
		}
		if values := got.header.Values(c.header); c.header != "" && strings.Join(values, "|") != strings.Join(c.values, "|") {
			t.Errorf("%s: %s is %q, want %q", c.act, c.header, values, c.values)
		}
	}
}

// Store decides whether a write happens; the answer need not tell the truth.
func TestStore(t *testing.T) {
	for act, want := range map[string]struct{ status, files int }{
		`{}`:                           {201, 1},
		`{"delay_ms":1}`:               {201, 1},
		`{"headers":{"X-A":"b"}}`:      {201, 1},
		`{"status":503}`:               {503, 0},
		`{"status":503,"store":true}`:  {503, 1},
		`{"status":202,"store":true}`:  {202, 1},
		`{"status":201}`:               {201, 0},
		`{"body":{}}`:                  {200, 0},
		`{"body":{},"store":true}`:     {201, 1},
		`{"store":false}`:              {200, 0},
		`{"store":false,"status":201}`: {201, 0},
	} {
		s := start(t, emulator.Options{})
		s.createFileSource("manuals")
		s.script(`[{"match":{"method":"POST"},"act":` + act + `}]`)
		got := s.upload("manuals", "a.txt", "hello")
		files := len(s.emulator.State().Sources[0].Files)
		if got.status != want.status || files != want.files {
			t.Errorf("%s: status %d and %d files, want %+v", act, got.status, files, want)
		}
		seen := s.emulator.Requests()
		if last := seen[len(seen)-1]; last.BodyBytes == 0 || last.BodyPartial || *last.Performed != (want.files == 1) {
			t.Errorf("%s: record %+v", act, last)
		}
	}
}

// Broken connections, and whether the write behind them happened.
func TestResets(t *testing.T) {
	for _, c := range []struct {
		act     string
		status  int // of the client; 0 = no answer
		whole   bool
		files   int
		refused bool // seen as a reset, not as an end
	}{
		{`{"reset":"before-headers"}`, 0, false, 0, true},
		{`{"reset":"before-headers","store":true}`, 0, false, 1, true},
		{`{"reset":"after-headers","store":true}`, 201, false, 1, false},
		{`{"reset":"after-headers"}`, 200, false, 0, false},
		{`{"reset":"after-body","store":true}`, 201, true, 1, false},
		{`{"reset":"after-headers","status":429}`, 429, false, 0, false},
	} {
		s := start(t, emulator.Options{})
		s.createFileSource("manuals")
		s.script(`[{"match":{"method":"POST","nth":1},"act":` + c.act + `}]`)
		body, kind := multipartBody(t, "metadata", `{"fileName":"a.txt"}`, "content", "hello")
		got, err := s.try("POST", filesOf("manuals"), body, "Content-Type", kind)
		if got.status != c.status || (err == nil) != c.whole || errors.Is(err, syscall.ECONNRESET) != c.refused {
			t.Errorf("%s: %d %s, %v", c.act, got.status, got.raw, err)
		}
		if files := len(s.emulator.State().Sources[0].Files); files != c.files {
			t.Errorf("%s: %d files", c.act, files)
		}
		seen := s.emulator.Requests()
		if last := seen[len(seen)-1]; last.Answer == nil || last.Answer.Status != c.status || last.Answer.Reset == "" {
			t.Errorf("%s: record %+v", c.act, last.Answer)
		}
		if got := s.do("GET", at("manuals"), ""); got.status != 200 {
			t.Errorf("%s: the emulator does not go on: %d", c.act, got.status)
		}
	}
}

// Delays and trickles over memory, in virtual time; a reset over memory is an end.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := emulatortest.New(t, emulatortest.Options{})
		client := &http.Client{Transport: emulatortest.Transport(t, e)}
		ask := func(act string) (spent, body time.Duration, err error) {
			emulatortest.Script(t, e, `[{"match":{},"act":`+act+`}]`)
			begun := time.Now()
			response, err := client.Get("http://service/anything")
			spent = time.Since(begun)
			if err != nil {
				return spent, 0, err
			}
			defer response.Body.Close()
			_, err = io.Copy(io.Discard, response.Body)
			return spent, time.Since(begun) - spent, err
		}
		if head, _, err := ask(`{"status":200,"delay_ms":60000}`); head != time.Minute || err != nil {
			t.Errorf("delayed by %v, %v", head, err)
		}
		if head, body, err := ask(`{"body":"12345","trickle_ms":1000}`); head != 0 || body != 5*time.Second || err != nil {
			t.Errorf("trickled: headers after %v, body for %v, %v", head, body, err)
		}
		if _, _, err := ask(`{"reset":"before-headers"}`); err == nil {
			t.Error("no answer was an answer")
		}
		if _, _, err := ask(`{"body":"12345","reset":"after-headers"}`); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a missing body: %v", err)
		}
		// A client that leaves during the delay is recorded as gone.
		emulatortest.Script(t, e, `[{"match":{},"act":{"delay_ms":60000}}]`)
		impatient := &http.Client{Transport: client.Transport, Timeout: time.Second}
		if _, err := impatient.Get("http://service/anything"); err == nil {
			t.Error("the impatient client got an answer")
		}
		synctest.Wait()
		seen := e.Requests()
		if last := seen[len(seen)-1]; last.Answer == nil || !last.Answer.Gone {
			t.Errorf("record: %+v", last.Answer)
		}
	})
}

// What is no script is refused, says where, and leaves the old script in place.
func TestBadScripts(t *testing.T) {
	s := start(t, emulator.Options{})
	s.script(`[{"match":{},"act":{"status":418}}]`)
	for _, bad := range []string{
		``, `{}`, `[] []`, `[{"match":{"path":"("}}]`, `[{"match":{"nth":-1}}]`, `[{"mach":{}}]`, `[{"act":{"status":99}}]`, `[{"act":{"status":600}}]`,
		`[{"act":{"reset":"sometimes"}}]`, `[{"act":{"delay_ms":-1}}]`, `[{"act":{"delay_ms":3600001}}]`, `[{"act":{"headers":{"A":1}}}]`, `[{"act":{"store":"yes"}}]`,
		`[` + strings.Repeat(`{},`, 1000) + `{}]`, `["` + strings.Repeat("x", 4<<20) + `"]`,
	} {
		if got := s.do("PUT", "/emulator/script", bad); got.status != 400 || got.code() != "InvalidScript" || got.message() == "" {
			t.Errorf("%.60s: %d %s", bad, got.status, got.raw)
		}
	}
	if got := s.do("GET", at("x"), ""); got.status != 418 {
		t.Errorf("the old script is gone: %d", got.status)
	}
}

// The calls of the emulator itself: no token needed, none recorded, nothing of a token shown, and
// one that empties everything.
func TestAdmin(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	s.upload("manuals", "a.txt", "hello")
	s.script(`[{"match":{},"act":{"status":418}}]`)
	s.do("GET", at("manuals"), "", "Authorization", "Bearer very-secret", "api-key", "very-secret")
	raw := s.do("GET", "/emulator/requests", "", "Authorization", "").raw
	var seen []map[string]any
	if err := json.Unmarshal(raw, &seen); err != nil || len(seen) != 3 {
		t.Fatalf("%v: %s", err, raw)
	}
	if strings.Contains(string(raw), "secret") {
		t.Errorf("a token in the record: %s", raw)
	}
	for _, field := range []string{"method", "path", "headers", "body_sha256", "body_bytes", "time", "answer"} {
		if _, given := seen[1][field]; !given {
			t.Errorf("no %s in %v", field, seen[1])
		}
	}
	if seen[0]["seq"] != 1.0 || seen[2]["seq"] != 3.0 || seen[1]["path"] != "/knowledgesources('manuals')/files" {
		t.Errorf("order or path: %v", seen)
	}
	state := string(s.do("GET", "/emulator/state", "").raw)
	if !strings.Contains(state, `"name": "a.txt"`) || !strings.Contains(state, `"sha256": "2cf24dba`) {
		t.Errorf("state: %s", state)
	}
	if got := s.do("POST", "/emulator/state", ""); got.status != 404 {
		t.Errorf("unknown call: %d", got.status)
	}
	if got := s.do("DELETE", "/emulator/state", "", "Authorization", ""); got.status != 204 {
		t.Errorf("delete: %d", got.status)
	}
	if got := s.emulator.State(); len(got.Sources) != 0 || len(s.emulator.Requests()) != 0 {
		t.Errorf("not empty: %+v", got)
	}
	if got := s.do("GET", at("manuals"), ""); got.status != 404 {
		t.Errorf("the script survived: %d", got.status)
	}
}

// The record may be read while requests are in flight: they are there from their arrival on,
// without an answer.
func TestRecordDuringRequests(t *testing.T) {
	s := start(t, emulator.Options{})
	s.createFileSource("manuals")
	s.script(`[{"match":{"method":"POST"},"act":{"delay_ms":20,"headers":{"X-A":"b"}}}]`)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() { s.upload("manuals", fmt.Sprintf("f%d.txt", i), "x") })
	}
	body, rest := io.Pipe() // of a request that stays in flight until it has been seen there
	group.Go(func() {
		r, err := http.NewRequest(http.MethodPost, s.server.URL+filesOf("manuals"), body)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer t")
		if response, err := s.client.Do(r); err != nil {
			t.Error(err)
		} else {
			response.Body.Close()
		}
	})
	unanswered := 0
	for finished, end := 0, time.Now().Add(time.Minute); finished < 6 && time.Now().Before(end); {
		finished = 0
		for _, r := range s.emulator.Requests() {
			if r.Answer != nil {
				finished++
			} else if unanswered++; r.Headers.Get("Content-Type") == "" {
				rest.Close()
			}
		}
		_ = s.emulator.State()
	}
	rest.Close()
	group.Wait()
	if unanswered == 0 {
		t.Error("no request was seen in flight")
	}
}
