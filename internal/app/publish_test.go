package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// send is do with a body.
func (w *world) send(method, path, body string, header ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+gateHost+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text), err}
}

// document is npm's publish document with changes.
func publishDocument(name string, change func(map[string]any)) string {
	version := map[string]any{"name": name, "version": "1.0.0", "_id": name + "@1.0.0"}
	doc := map[string]any{
		"_id": name, "name": name, "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version},
		"_attachments": map[string]any{name + "-1.0.0.tgz": map[string]any{"data": base64.StdEncoding.EncodeToString([]byte("tarball"))}},
	}
	if change != nil {
		change(doc)
	}
	b, _ := json.Marshal(doc)
	return string(b)
}

const corePath = "/npm/@acme%2fcore"

// The publisher's document and credential arrive as they were sent, and the target's answer comes
// back; a cooldown is no concern of it (R39).
func TestPublishIsRelayed(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		cooling429(w, "60")
		w.get("/npm/left-pad")
		doc := publishDocument("@acme/core", nil)
		a := w.send(http.MethodPut, corePath, doc, "Authorization", "Bearer mine", "Content-Type", "application/json", "Npm-Otp", "123456", "Cookie", "no")
		if a.status != http.StatusCreated || len(h.bodies) != 1 || string(h.bodies[0]) != doc || h.auth[0] != "Bearer mine" || h.puts[0] != "PUT /@acme%2fcore" {
			t.Errorf("answer %+v, writes %q", a, h.puts)
		}
		if a = w.send(http.MethodPut, corePath, doc, "Authorization", "Bearer mine"); a.status != http.StatusConflict || !strings.Contains(a.body, "already present") {
			t.Errorf("the target's refusal came as %+v", a)
		}
		if w.metric(`ecluse_decisions_total{decision="admit",ecosystem="npm",kind="publish"}`) != 2 {
			t.Error("publications are not counted")
		}
	})
}

// tc-079, tc-080, tc-081: a publication is sent once, whatever the target does to it, and the doubt
// is told.
func TestPublishIsSentOnce(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		reset := func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
		unavailable := func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Retry-After", "9")
			rw.WriteHeader(503)
			return true
		}
		for i, c := range []struct {
			act    func(http.ResponseWriter, *http.Request) bool
			status int
			wait   int
			says   string
		}{
			{nil, 201, -1, ""}, // leaves a connection behind that could be used again
			{reset, 502, -1, "may or may not have accepted"},
			{reset, 502, -1, "may or may not have accepted"},
			{unavailable, 503, 9, ""},
		} {
			h.Answer(c.act)
			a := w.send(http.MethodPut, corePath, publishDocument("@acme/core", nil), "Authorization", "Bearer mine")
			w.want(a, c.status, c.wait)
			if !strings.Contains(a.body, c.says) {
				t.Errorf("body %q, want %q", a.body, c.says)
			}
			if n := len(h.writes()); n != i+1 {
				t.Fatalf("after request %d the target saw %d writes: %q", i+1, n, h.writes())
			}
		}
	})
}

// Only first-party names, and no other name anywhere inside; the target hears of nothing else.
func TestPublishRefusals(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		at := func(key string, value any) func(map[string]any) { return func(d map[string]any) { d[key] = value } }
		in := func(key string, value any) func(map[string]any) {
			return func(d map[string]any) { d["versions"].(map[string]any)["1.0.0"].(map[string]any)[key] = value }
		}
		for _, c := range []struct {
			what, path, body string
			status           int
		}{
			{"a public name", "/npm/left-pad", publishDocument("left-pad", nil), 403},
			{"another name", corePath, publishDocument("left-pad", nil), 400},
			{"another first-party name", corePath, publishDocument("@acme/other", nil), 400},
			{"another _id", corePath, publishDocument("@acme/core", at("_id", "left-pad")), 400},
			{"no name", corePath, publishDocument("@acme/core", at("name", nil)), 400},
			{"another version's name", corePath, publishDocument("@acme/core", in("name", "left-pad")), 400},
			{"another version's _id", corePath, publishDocument("@acme/core", in("_id", "left-pad@1.0.0")), 400},
			{"another version", corePath, publishDocument("@acme/core", in("version", "2.0.0")), 400},
			{"another's attachment", corePath, publishDocument("@acme/core", at("_attachments", map[string]any{"left-pad-1.0.0.tgz": map[string]any{}})), 400},
			{"a path as attachment", corePath, publishDocument("@acme/core", at("_attachments", map[string]any{"@acme/core-1.0.0/../x.tgz": map[string]any{}})), 400},
			{"two names", corePath, strings.Replace(publishDocument("@acme/core", nil), `"name":`, `"name":"left-pad","name":`, 1), 400},
			{"two documents", corePath, publishDocument("@acme/core", nil) + publishDocument("left-pad", nil), 400},
			{"a list", corePath, "[]", 400},
			{"cut", corePath, publishDocument("@acme/core", nil)[:60], 400},
			{"a version's path", corePath + "/1.0.0", publishDocument("@acme/core", nil), 405},
			{"a dist-tag of a public name", "/npm/-/package/left-pad/dist-tags/latest", `"1.0.0"`, 405},
			{"a revision with another name", corePath + "/-rev/1-a", `{"_id":"@acme/core","name":"left-pad"}`, 400},
			{"a revision with another version", corePath + "/-rev/1-a", publishDocument("@acme/core", in("name", "left-pad")), 400},
			{"a revision that is a list", corePath + "/-rev/1-a", "[]", 400},
		} {
			if a := w.send(http.MethodPut, c.path, c.body, "Authorization", "Bearer mine"); a.status != c.status {
				t.Errorf("%s: %d %s, want %d", c.what, a.status, a.body, c.status)
			}
		}
		if n := len(h.writes()); n != 0 {
			t.Errorf("the target heard of %q", h.writes())
		}
		if a := w.send(http.MethodPut, corePath, "{}", "Content-Encoding", "gzip", "Authorization", "Bearer mine"); a.status != 415 {
			t.Errorf("an encoded document: %d", a.status)
		}
	})
}

// Without a place to publish the methods are not there, as before.
func TestPublishNotConfigured(t *testing.T) {
	inWorld(t, "", func(w *world) {
		for path, method := range map[string]string{corePath: http.MethodPut, "/pypi/legacy/": http.MethodPost} {
			if a := w.send(method, path, "{}"); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") == "" {
				t.Errorf("%s %s: %d, Allow %q", method, path, a.status, a.header.Get("Allow"))
			}
		}
	})
}

// More publications at once than there are places wait at their clients.
func TestPublishIsBounded(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		h.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			time.Sleep(time.Second)
			rw.WriteHeader(201)
			return true
		})
		answers := make(chan answer)
		const places = 8 // of the server
		const n = 3 * places
		for range n {
			go func() {
				answers <- w.send(http.MethodPut, corePath, publishDocument("@acme/core", nil), "Authorization", "Bearer mine")
			}()
		}
		statuses := map[int]int{}
		for range n {
			statuses[(<-answers).status]++
		}
		if statuses[201] != places || statuses[503] != n-places {
			t.Errorf("statuses %v", statuses)
		}
	})
}

// uploadForm is the form that twine sends for a file, with changes.
func uploadForm(f fakepypi.File, change func(w *multipart.Writer)) (contentType, body string) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	sum := sha256.Sum256(f.Content)
	for _, field := range [][2]string{
		{":action", "file_upload"},
		{"protocol_version", "1"},
		{"name", "acme_tool"},
		{"version", "1.0"},
		{"filetype", "bdist_wheel"},
		{"pyversion", "py3"},
		{"metadata_version", "2.1"},
		{"classifiers", "A"},
		{"classifiers", "B"},
		{"sha256_digest", hex.EncodeToString(sum[:])},
	} {
		_ = w.WriteField(field[0], field[1])
	}
	if change != nil {
		change(w)
	}
	part, _ := w.CreateFormFile("content", f.Name)
	_, _ = part.Write(f.Content)
	_ = w.Close()
	return w.FormDataContentType(), buf.String()
}

const withIndexTarget = "pypi, firstParty: [acme-tool], publish: {url: 'http://" + houseHost + "/legacy/'}\n"

// The wire form of twine: relayed byte for byte for a first-party project, and refused for any
// other name in it.
func TestUpload(t *testing.T) {
	inWorld(t, withIndexTarget, func(w *world) {
		var got []string
		w.serve(houseHost+":80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(b))
		}))
		wheel := fakepypi.Wheel("acme-tool", "1.0")
		contentType, body := uploadForm(wheel, nil)
		a := w.send(http.MethodPost, "/pypi/legacy/", body, "Content-Type", contentType, "Authorization", "Basic bWU6bWU=")
		if a.status != 200 || len(got) != 1 || got[0] != "POST /legacy/ Basic bWU6bWU= "+body {
			t.Errorf("answer %+v, %d uploads", a, len(got))
		}
		field := func(name, value string) func(*multipart.Writer) {
			return func(w *multipart.Writer) { _ = w.WriteField(name, value) }
		}
		for what, c := range map[string]struct {
			file   fakepypi.File
			change func(*multipart.Writer)
		}{
			"a file of another project": {fakepypi.Wheel("requests", "1.0"), nil},
			"another version's file":    {fakepypi.Wheel("acme-tool", "2.0"), nil},
			"a second name":             {wheel, field("name", "requests")},
			"a name in capitals":        {wheel, field("Name", "requests")},
			"a second action":           {wheel, field(":action", "submit")},
			"another's signature": {wheel, func(w *multipart.Writer) {
				part, _ := w.CreateFormFile("gpg_signature", "requests-1.0-py3-none-any.whl.asc")
				_, _ = part.Write([]byte("x"))
			}},
			"a second file": {wheel, func(w *multipart.Writer) {
				part, _ := w.CreateFormFile("content", "requests-1.0-py3-none-any.whl")
				_, _ = part.Write([]byte("x"))
			}},
		} {
			contentType, body := uploadForm(c.file, c.change)
			if a := w.send(http.MethodPost, "/pypi/legacy/", body, "Content-Type", contentType, "Authorization", "Basic bWU6bWU="); a.status != http.StatusBadRequest {
				t.Errorf("%s: %d %s", what, a.status, a.body)
			}
		}
		contentType, body = uploadForm(fakepypi.Wheel("requests", "1.0"), nil)
		body = strings.Replace(body, "acme_tool", "requests", 1)
		if a := w.send(http.MethodPost, "/pypi/legacy/", body, "Content-Type", contentType, "Authorization", "Basic bWU6bWU="); a.status != http.StatusForbidden {
			t.Errorf("a public project: %d %s", a.status, a.body)
		}
		if a := w.send(http.MethodPost, "/pypi/legacy/", "name=acme-tool", "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Basic bWU6bWU="); a.status != 400 {
			t.Errorf("no multipart: %d", a.status)
		}
		if len(got) != 1 {
			t.Errorf("the target got %d uploads", len(got))
		}
	})
}
