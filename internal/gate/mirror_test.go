package gate

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// The mirror gets files under the same verdict, checked to the last byte, and leaves a throttled
// answer to clients (R50, R58). A client's file is offered to it, and nothing else is (R53).
func TestMirror(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var offered []string
		w.gate.SetMirror(func(name, version, file string) { offered = append(offered, name+version+file) })
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.Public.Publish("a", "2.0.0", time.Now(), nil)
		w.wantFile("a", "1.0.0")
		_, _, err := w.file("a", "2.0.0")
		failed[*Denied](t, err)
		_, _, _ = w.artifact(ArtifactRequest{Method: http.MethodHead, Name: "a", File: toy.File("a", "1.0.0")})
		w.gate.SetMirror(nil)
		w.wantFile("a", "1.0.0")
		if len(offered) != 1 || offered[0] != "a1.0.0a-1.0.0.tgz" {
			t.Error(offered)
		}
		fetch := func(version string) (string, error) {
			c, err := w.gate.Fetch(t.Context(), "a", toy.File("a", version), "http://mirror.test")
			if err != nil {
				return "", err
			}
			defer c.Body.Close()
			if !strings.Contains(string(c.Manifest), "http://mirror.test/a/-/") || c.Version.Version != version || c.Size == 0 {
				t.Errorf("%+v", c)
			}
			body, err := io.ReadAll(c.Body)
			return string(body), err
		}
		if body, err := fetch("1.0.0"); err != nil || body != string(fakenpm.File("a", "1.0.0")) {
			t.Error(err)
		}
		_, err = fetch("2.0.0")
		failed[*Denied](t, err)
		_, err = fetch("3.0.0")
		failed[*NotFound](t, err)
		_, err = w.gate.Fetch(t.Context(), "a", "no file", "")
		failed[*NotFound](t, err)
		versions, err := w.gate.FilesOf(t.Context(), "a", func(v string) bool { return v == "2.0.0" })
		if err != nil || len(versions) != 1 || versions[0].Version != "2.0.0" {
			t.Error(versions, err)
		}
		wrong := fakenpm.File("a", "2.0.0")
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool { _, _ = rw.Write(wrong); return true })
		_, err = fetch("1.0.0")
		if e := failed[*Mismatch](t, err); !strings.Contains(e.Error(), "a-1.0.0.tgz does not have the digest") {
			t.Error(e)
		}
		w.Public.Always(http.StatusGone)
		_, err = fetch("1.0.0")
		if e := failed[*Refused](t, err); e.Status != 410 || !strings.Contains(e.Error(), "410") {
			t.Error(e)
		}
		w.Public.Always(http.StatusServiceUnavailable)
		_, err = fetch("1.0.0")
		if e := failed[*Unavailable](t, err); e.Cooldown {
			t.Errorf("%+v", e)
		}
		w.Throttle(60)
		_, err = fetch("1.0.0")
		if e := paused(t, err, 60); !e.Collapsed {
			t.Errorf("%+v", e)
		}
	})
	inWorld(t, func(t *testing.T, w *world) { // without an object of one version
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		if c, err := w.gate.Fetch(t.Context(), "a", toy.File("a", "1.0.0"), ""); err != nil || c.Manifest != nil {
			t.Error(c, err)
		} else {
			c.Body.Close()
		}
	}, linksOnly)
}

// R8, R39, tc-079 to tc-081: a publication goes to the target once, for first-party names alone;
// its answer is handed on, and none is no reason to repeat it.
func TestPublish(t *testing.T) {
	target := fakenpm.New("")
	publish := func(w *toy.World, o *Options) {
		w.Serve(toy.TargetHost, target)
		var err error
		if o.Publish, err = w.Client.Target(toy.Base(toy.TargetHost), upstream.Encoded); err != nil {
			w.T.Fatal(err)
		}
	}
	inWorld(t, func(t *testing.T, w *world) {
		if failed[*Denied](t, w.gate.MayPublish("a")).Verdict.Rule != PublishRule || w.gate.MayPublish("own") != nil || !w.gate.Publishes() {
			t.Error("who may publish")
		}
		target.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body) // an answer to half of a request may be lost
			rw.WriteHeader(http.StatusConflict)
			return true
		})
		for _, path := range []string{"", "/own"} {
			a, err := w.gate.Publish(t.Context(), PublishRequest{
				Method: http.MethodPut, Name: "own", Path: path, Body: strings.NewReader("x"), Length: 1, Authorization: "Bearer x",
			})
			if err != nil || a.Status != 409 || !a.Relayed {
				t.Fatal(a, err)
			}
			a.Body.Close()
		}
		target.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		_, err := w.gate.Publish(t.Context(), PublishRequest{Method: http.MethodPut, Name: "own", Body: strings.NewReader("x"), Length: 1})
		if e := failed[*BadUpstream](t, err); !strings.Contains(e.Error(), "check before publishing again") {
			t.Error(e)
		}
		if seen := target.Seen(); len(seen) != 3 || seen[1].Path != "/own" || seen[0].Header.Get("Authorization") != "Bearer x" {
			t.Errorf("%+v", seen)
		}
	}, firstParty, publish)
	inWorld(t, func(t *testing.T, w *world) {
		if w.gate.Publishes() || w.gate.Ecosystem() != toy.Name || w.gate.Rules() == nil {
			t.Error("a mount without a target")
		}
	})
}
