package emulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/emulator"
)

const version = "api-version=2026-10-01"

// service is an emulator on a socket with a client that neither retries nor follows.
type service struct {
	t        *testing.T
	emulator *emulator.Emulator
	server   *httptest.Server
	client   *http.Client
}

func start(t *testing.T, options emulator.Options) *service {
	t.Helper()
	e, err := emulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &service{t: t, emulator: e, server: server, client: client}
}

type result struct {
	status int
	header http.Header
	body   map[string]any
	raw    []byte
}

// do sends one authorised request; headers are pairs of name and value.
func (s *service) do(method, path, body string, headers ...string) result {
	s.t.Helper()
	got, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

func (s *service) try(method, path, body string, headers ...string) (result, error) {
	s.t.Helper()
	address := path
	if !strings.HasPrefix(path, "http") {
		address = s.server.URL + path
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(r)
	if err != nil {
		return result{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	got := result{status: response.StatusCode, header: response.Header, raw: raw}
	_ = json.Unmarshal(raw, &got.body) // lists and empty bodies have no object
	return got, err
}

func (r result) code() string {
	inner, _ := r.body["error"].(map[string]any)
	code, _ := inner["code"].(string)
	return code
}

func (r result) message() string {
	inner, _ := r.body["error"].(map[string]any)
	message, _ := inner["message"].(string)
	return message
}

func (s *service) script(text string) {
	s.t.Helper()
	if got := s.do("PUT", "/emulator/script", text); got.status != 200 {
		s.t.Fatalf("script refused: %s", got.raw)
	}
}

func at(name string) string { return "/knowledgesources('" + name + "')?" + version }

func filesOf(name string) string { return "/knowledgesources('" + name + "')/files?" + version }

func (s *service) createFileSource(name string) result {
	s.t.Helper()
	got := s.do("PUT", at(name), `{"name":"`+name+`","kind":"file","fileParameters":{"ingestionParameters":{"contentExtractionMode":"minimal"}}}`)
	if got.status != 201 {
		s.t.Fatalf("create %s: %d %s", name, got.status, got.raw)
	}
	return got
}

// multipartBody makes an upload; parts are pairs of name and content, a content part gets a file
// name.
func multipartBody(t *testing.T, parts ...string) (body, contentType string) {
	t.Helper()
	var buffer bytes.Buffer
	writer := multipart.NewWriter(&buffer)
	for i := 0; i+1 < len(parts); i += 2 {
		var part io.Writer
		var err error
		if parts[i] == "content" {
			part, err = writer.CreateFormFile("content", "content")
		} else {
			part, err = writer.CreateFormField(parts[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, parts[i+1])
	}
	_ = writer.Close()
	return buffer.String(), writer.FormDataContentType()
}

func (s *service) upload(source, name, content string) result {
	s.t.Helper()
	body, kind := multipartBody(s.t, "metadata", fmt.Sprintf(`{"fileName":%q,"metadata":{"owner":"me"}}`, name), "content", content)
	return s.do("POST", filesOf(source), body, "Content-Type", kind)
}
