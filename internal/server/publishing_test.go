package server

import (
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/gate/gatetest"
)

const (
	corePath = "/npm/@acme%2fcore"
	coreDoc  = `{"_id":"@acme/core","name":"@acme/core","dist-tags":{"latest":"1.0.0"},` +
		`"versions":{"1.0.0":{"name":"@acme/core","version":"1.0.0","_id":"@acme/core@1.0.0"}},` +
		`"_attachments":{"@acme/core-1.0.0.tgz":{"data":"dGFyYmFsbA=="}}}`
)

// A package goes on as it came, with what its publisher's tool says and nothing else; the target's
// answer comes back.
func TestPublishHandsOn(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		var got *http.Request
		var body []byte
		w.Target = func(rw http.ResponseWriter, r *http.Request) {
			got = r
			body, _ = io.ReadAll(r.Body)
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(rw, `{"ok":true}`)
		}
		a := w.Do(http.MethodPut, corePath, coreDoc, "Authorization", "Bearer mine", "Npm-Otp", "123456", "Cookie", "no")
		if a.Status != http.StatusCreated || a.Body != `{"ok":true}` || string(body) != coreDoc {
			t.Errorf("%d %s; the target got %s", a.Status, a.Body, body)
		}
		if h := got.Header; h.Get("Authorization") != "Bearer mine" || h.Get("Npm-Otp") != "123456" || h.Get("Cookie") != "" || got.URL.EscapedPath() != "/@acme%2fcore" {
			t.Errorf("%s %v", got.URL, h)
		}
		left, err := os.ReadDir(w.server.opts.SpoolDir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		contentType, form := twineForm("acme-tool")
		if a = w.Do(http.MethodPost, "/pypi/legacy/", form, "Content-Type", contentType, "Authorization", "Basic bTpt"); a.Status != http.StatusCreated || string(body) != form {
			t.Errorf("upload: %d %s", a.Status, a.Body)
		}
	})
}

// twineForm is the form that twine sends for a file of a project.
func twineForm(project string) (contentType, body string) {
	var buf strings.Builder
	w := multipart.NewWriter(&buf)
	for _, f := range [][2]string{{":action", "file_upload"}, {"protocol_version", "1"}, {"name", project}, {"version", "1.0"}, {"filetype", "bdist_wheel"}} {
		_ = w.WriteField(f[0], f[1])
	}
	wheel := fakepypi.Wheel(project, "1.0")
	part, _ := w.CreateFormFile("content", wheel.Name)
	_, _ = part.Write(wheel.Content)
	_ = w.Close()
	return w.FormDataContentType(), buf.String()
}

// A disk that takes nothing costs a publisher a wait and no more: nothing reaches the target, and
// the next try goes through.
func TestPublishWithoutADisk(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		asked := 0
		w.Target = func(rw http.ResponseWriter, _ *http.Request) { asked++; rw.WriteHeader(http.StatusCreated) }
		dir := w.server.opts.SpoolDir
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.Do(http.MethodPut, corePath, coreDoc, "Authorization", "Bearer mine")
		if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "30" || asked != 0 {
			t.Errorf("%d %v, the target was asked %d times", a.Status, a.Header, asked)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if a := w.Do(http.MethodPut, corePath, coreDoc, "Authorization", "Bearer mine"); a.Status != http.StatusCreated || asked != 1 {
			t.Errorf("%d, the target was asked %d times", a.Status, asked)
		}
	})
}

// Nothing reaches the target of a package that is refused here.
func TestPublishIsRefusedHere(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Target = func(http.ResponseWriter, *http.Request) { t.Error("the target heard of it") }
		w.server.publishing.limit = int64(len(coreDoc))
		contentType, form := twineForm("requests")
		for name, c := range map[string]struct {
			method, path, body string
			header             []string
			status             int
		}{
			"a public name":    {"PUT", "/npm/left-pad", coreDoc, nil, 403},
			"another name":     {"PUT", "/npm/@acme%2fother", coreDoc, nil, 400},
			"too large":        {"PUT", corePath, coreDoc + " ", nil, 413},
			"encoded":          {"PUT", corePath, coreDoc, []string{"Content-Encoding", "gzip"}, 415},
			"no form":          {"POST", "/pypi/legacy/", "a=b", []string{"Content-Type", "text/plain"}, 400},
			"too large a file": {"POST", "/pypi/legacy/", form, []string{"Content-Type", contentType}, 413},
		} {
			if a := w.Do(c.method, c.path, c.body, append(c.header, "Authorization", "Bearer mine")...); a.Status != c.status {
				t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, c.status)
			}
		}
		// A body of unknown length is cut where the limit is.
		r := httptest.NewRequestWithContext(w.T.Context(), http.MethodPut, corePath, io.MultiReader(strings.NewReader(coreDoc+" ")))
		r.Header.Set("Authorization", "Bearer mine")
		rec := newRecorder()
		if w.server.Handler().ServeHTTP(rec, r); rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("unknown length: %d %s", rec.Code, rec.Body)
		}
		for range cap(w.server.publishing.slots) {
			w.server.publishing.slots <- struct{}{}
		}
		w.Want(w.Do(http.MethodPut, corePath, coreDoc, "Authorization", "Bearer mine"), 503, 1)
	})
}

// Without a place of publication the methods are not there.
func TestNoPublishing(t *testing.T) {
	gatetest.Run(t, gatetest.Options{ReadOnly: true}, func(w *gatetest.World) {
		s := New(Options{Mounts: w.Mounts, Metrics: w.Metrics, Logger: w.Logger, Tracer: w.Tracer})
		w.Serve(s.Handler())
		for path, method := range map[string]string{corePath: http.MethodPut, "/pypi/legacy/": http.MethodPost} {
			if a := w.Do(method, path, "{}"); a.Status != http.StatusMethodNotAllowed || a.Header.Get("Allow") == "" {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.Status, a.Header.Get("Allow"))
			}
		}
	})
}
