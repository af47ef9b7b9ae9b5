package app

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/mirror"
)

// The secrets of a test: what callers send, and what the gate has of its own.
const (
	edgeToken, readToken  = "edge-token-1", "edge-token-2"
	callerToken           = "callers-own"
	ownNPM, ownPyPI       = "gates-npm-token", "gates-password"
	ownMirror, ownPublish = "gates-mirror-token", "gates-publish-token"
)

func bearer(token string) string { return "Bearer " + token }

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// secretFiles writes files with secrets, for their names in a configuration.
func secretFiles(t *testing.T, texts map[string]string) *strings.Replacer {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, "FILE:"+name, "'"+path+"'")
	}
	return strings.NewReplacer(names...)
}

// seenRequest is a request as one of the upstreams saw it.
type seenRequest struct {
	host, path string
	header     http.Header
}

// recorded is what all upstreams saw. The house stands for the mirror and the place of publication.
type recorded struct {
	mu  sync.Mutex
	all []seenRequest
}

func (r *recorded) add(host string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, req *http.Request) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, seenRequest{host, req.Method + " " + req.URL.EscapedPath(), req.Header.Clone()})
		return false
	}
}

// sides gives what arrived so far as Authorization, by host, each once and sorted; "" is none.
func (r *recorded) sides() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]map[string]bool{}
	for _, s := range r.all {
		if out[s.host] == nil {
			out[s.host] = map[string]bool{}
		}
		out[s.host][s.header.Get("Authorization")] = true
	}
	lists := map[string][]string{}
	for host, set := range out {
		lists[host] = slices.Sorted(maps.Keys(set))
	}
	return lists
}

// holds reports whether a header says a secret, as it is or inside of a basic login.
func holds(h http.Header, secret string) bool {
	for _, values := range h {
		for _, v := range values {
			_, encoded, _ := strings.Cut(v, " ")
			plain, _ := base64.StdEncoding.DecodeString(encoded)
			if strings.Contains(v, secret) || bytes.Contains(plain, []byte(secret)) {
				return true
			}
		}
	}
	return false
}

// credentialMounts has a private registry, a place of publication and for npm a mirror. MORE1 and
// MORE2 stand for more keys.
const credentialMounts = `mounts:
  npm: {public: 'http://registry.test/', private: 'http://private.test/', firstParty: ['@acme/*'], publish: {url: 'http://house.test/' PUBLISH}, mirror: {url: 'http://house.test/', tokenFile: FILE:mirror} MORE1}
  pypi: {public: 'http://index.test/simple/', files: ['http://files.test'], private: 'http://own.test/simple/', firstParty: [acme-tool, acme-gone], publish: {url: 'http://own.test/legacy/'} MORE2}
`

// everyRoute sends every kind of request that a mount answers, with the caller's credential in each
// of the places where one can stand.
func everyRoute(w *world, own bool, credential string) {
	secret := []string{
		"Authorization", credential, "Cookie", "token=" + credential, "Proxy-Authorization", credential, "X-Api-Key", credential, "Npm-Otp", "123456",
	}
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/npm/a", ""},
		{"HEAD", "/npm/a", ""},
		{"GET", "/npm/a/latest", ""},
		{"GET", "/npm/a/1.0.0", ""},
		{"GET", "/npm/a/-/a-1.0.0.tgz", ""},
		{"HEAD", "/npm/a/-/a-1.0.0.tgz", ""},
		{"GET", "/npm/@acme%2fcore", ""},
		{"GET", "/npm/@acme/core", ""},
		{"GET", "/npm/@acme/core/1.0.0", ""},
		{"GET", "/npm/@acme/core/-/core-1.0.0.tgz", ""},
		{"GET", "/npm/@acme%2fgone", ""},
		{"GET", "/npm/@acme%2fgone/-/gone-1.0.0.tgz", ""},
		{"GET", "/npm/own", ""},
		{"GET", "/npm/own/-/own-1.0.0.tgz", ""},
		{"GET", "/npm/absent", ""},
		{"GET", "/npm/-/ping", ""},
		{"GET", "/npm/-/whoami", ""},
		{"PUT", "/npm/-/user/org.couchdb.user:ann", `{"name":"ann","password":"` + credential + `"}`},
		{"GET", "/npm/-/v1/search?text=@acme/core", ""},
		{"POST", "/npm/-/npm/v1/security/advisories/bulk", `{"@acme/core":["1.0.0"]}`},
		{"POST", "/npm/-/npm/v1/security/audits/quick", `{"requires":{"@acme/core":"1.0.0"}}`},
		{"GET", "/npm/-/package/@acme%2fcore/dist-tags", ""},
		{"PUT", "/npm/-/package/@acme%2fcore/dist-tags/latest", `"1.0.0"`},
		{"GET", "/npm/-/package/@acme%2fcore/access", ""},
		{"GET", "/npm/-/npm/v1/keys", ""},
		{"GET", "/npm/-/npm/v1/attestations/@acme%2fcore@1.0.0", ""},
		{"DELETE", "/npm/@acme%2fcore/-rev/1", ""},
		{"PUT", corePath, publishDocument("@acme/core", nil)},
		{"GET", "/pypi/simple/", ""},
		{"GET", "/pypi/simple/b/", ""},
		{"GET", "/pypi/simple/B", ""},
		{"GET", "/pypi/simple/acme-tool/", ""},
		{"GET", "/pypi/simple/acme-gone/", ""},
		{"GET", "/pypi/files/b/b-1.0-py3-none-any.whl", ""},
		{"GET", "/pypi/files/b/b-1.0-py3-none-any.whl.metadata", ""},
		{"HEAD", "/pypi/files/b/b-1.0-py3-none-any.whl", ""},
		{"GET", "/pypi/files/acme-tool/acme_tool-1.0-py3-none-any.whl", ""},
		{"GET", "/pypi/files/acme-tool/acme_tool-1.0-py3-none-any.whl.metadata", ""},
		{"GET", "/pypi/pypi/acme-tool/json", ""},
		{"GET", "/why/npm/@acme/core", ""},
		{"GET", "/livez", ""},
	} {
		w.send(r.method, r.path, r.body, secret...)
	}
	contentType, form := uploadForm(fakepypi.Wheel("acme-tool", "1.0"), nil)
	w.send("POST", "/pypi/legacy/", form, append(secret, "Content-Type", contentType)...)
	if own {
		for _, target := range []string{"npm:@acme/core", "npm:a@1.0.0", "pypi:acme-tool", "pypi:b"} {
			w.explain(target)
		}
		for _, name := range []string{"@acme/core", "a"} {
			_, _ = w.app.Files(w.t.Context(), "npm", name, "1.0.0")
		}
		w.worker().Do(w.t.Context(), mirror.Job{Ecosystem: "npm", Package: "a", Version: "1.0.0", File: "a-1.0.0.tgz"})
		w.worker().Do(w.t.Context(), mirror.Job{Ecosystem: "npm", Package: "@acme/core", Version: "1.0.0", File: "core-1.0.0.tgz"})
	}
}

// stockCredentials fills both sides of both mounts, and lets a recorder look at all that arrives.
func stockCredentials(w *world) *recorded {
	rec, h := &recorded{}, newHouse()
	w.serve(houseHost+":80", h)
	h.Answer(rec.add(houseHost))
	w.public.Publish("a", "1.0.0", longAgo, nil)
	w.private.Publish("own", "1.0.0", longAgo, nil)
	w.private.Publish("@acme/core", "1.0.0", longAgo, nil)
	w.public.Publish("@acme/core", "99.0.0", longAgo, nil) // an impostor
	w.pypi.Publish("b", fakepypi.Wheel("b", "1.0", fakepypi.UploadedAt(longAgo)))
	w.pypi.Publish("acme-tool", fakepypi.Wheel("acme-tool", "99.0", fakepypi.UploadedAt(longAgo)))
	w.pypiOwn.Publish("acme-tool", fakepypi.Wheel("acme-tool", "1.0", fakepypi.UploadedAt(longAgo)))
	w.public.Answer(rec.add(publicHost))
	w.private.Answer(rec.add(privateHost))
	w.pypi.Index.Answer(rec.add(indexHost))
	w.pypi.Files.Answer(rec.add(filesHost))
	look := rec.add(ownHost)
	w.pypiOwn.Index.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
		if look(rw, r); r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusOK)
			return true
		}
		return false
	})
	return rec
}

// R106: over every route, a token of the gate's goes to no upstream, a caller's own credential to
// the private registry and the place of publication or nowhere, the gate's own where it belongs,
// and no first-party name to a public registry.
func TestCredentialsEndWhereTheyBelong(t *testing.T) {
	const tokens = "auth: {tokensFile: FILE:tokens}"
	logins1, logins2 := ", privateTokenFile: FILE:npm", ", privateUsernameFile: FILE:user, privatePasswordFile: FILE:password"
	anonymous := ", privateAnonymous: true"
	pypiLogin := basic("ann", ownPyPI)
	for name, c := range map[string]struct {
		more1, more2, publish, rest string
		caller                      string
		want                        map[string][]string
	}{
		"tokens, own logins": {logins1, logins2, ", tokenFile: FILE:publish", tokens, bearer(edgeToken), map[string][]string{
			privateHost: {bearer(ownNPM)}, ownHost: {pypiLogin}, houseHost: {bearer(ownMirror), bearer(ownPublish)},
		}},
		"tokens as passwords": {logins1, logins2, ", tokenFile: FILE:publish", tokens, basic("anybody", edgeToken), map[string][]string{
			privateHost: {bearer(ownNPM)}, ownHost: {pypiLogin}, houseHost: {bearer(ownMirror), bearer(ownPublish)},
		}},
		"tokens, a token for the index": {
			logins1, ", privateTokenFile: FILE:npm", ", usernameFile: FILE:user, passwordFile: FILE:password", tokens,
			bearer(edgeToken),
			map[string][]string{
				privateHost: {bearer(ownNPM)}, ownHost: {basic("__token__", ownNPM)}, houseHost: {pypiLogin, bearer(ownMirror)},
			},
		},
		"a token for reading": {logins1, logins2, ", tokenFile: FILE:publish", tokens, bearer(readToken), map[string][]string{
			privateHost: {bearer(ownNPM)}, ownHost: {pypiLogin}, houseHost: {bearer(ownMirror)},
		}},
		"tokens, open registries": {anonymous, anonymous, ", tokenFile: FILE:publish", tokens, bearer(edgeToken), map[string][]string{
			privateHost: {""}, ownHost: {""}, houseHost: {bearer(ownMirror), bearer(ownPublish)},
		}},
		"no tokens": {"", "", "", "", bearer(callerToken), map[string][]string{
			// without any: explain, for which the gate has none
			privateHost: {"", bearer(callerToken)}, ownHost: {"", bearer(callerToken)}, houseHost: {bearer(callerToken), bearer(ownMirror)},
		}},
		"no tokens, own logins": {logins1, logins2, "", "", bearer(callerToken), map[string][]string{
			privateHost: {bearer(ownNPM)}, ownHost: {pypiLogin, bearer(callerToken)}, houseHost: {bearer(callerToken), bearer(ownMirror)},
		}},
		// explain alone asks with the gate's own
		"a token that nobody has": {logins1, logins2, ", tokenFile: FILE:publish", tokens, bearer("no-such-token"), map[string][]string{
			privateHost: {bearer(ownNPM)}, ownHost: {pypiLogin}, houseHost: {bearer(ownMirror)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := secretFiles(t, map[string]string{
				"tokens": "ci " + edgeToken + "\nreader " + readToken + " read", "npm": ownNPM, "user": "ann", "password": ownPyPI, "mirror": ownMirror, "publish": ownPublish,
			})
			yaml := files.Replace(strings.NewReplacer("MORE1", c.more1, "MORE2", c.more2, "PUBLISH", c.publish).Replace(credentialMounts) + c.rest)
			inWorld(t, yaml, func(w *world) {
				rec := stockCredentials(w)
				everyRoute(w, true, c.caller)
				got := rec.sides()
				for _, host := range []string{privateHost, ownHost, houseHost} {
					if !slices.Equal(got[host], slices.Sorted(slices.Values(c.want[host]))) {
						t.Errorf("%s was sent %q, want %q", host, got[host], c.want[host])
					}
				}
				for _, s := range rec.all {
					public := s.host == publicHost || s.host == indexHost || s.host == filesHost
					if public && (s.header.Get("Authorization") != "" || strings.Contains(s.path, "acme")) {
						t.Errorf("%s was sent %s with %q", s.host, s.path, s.header.Get("Authorization"))
					}
					for _, secret := range []string{edgeToken, readToken, "no-such-token"} {
						if holds(s.header, secret) {
							t.Errorf("%s was sent a token of the gate's: %s %v", s.host, s.path, s.header)
						}
					}
					if public && holds(s.header, callerToken) || c.rest != "" && s.header.Get("Npm-Otp") != "" || s.header.Get("Cookie") != "" {
						t.Errorf("%s was sent what is the caller's: %s %v", s.host, s.path, s.header)
					}
				}
				if c.caller != bearer("no-such-token") && len(got[publicHost]) == 0 {
					t.Error("the public registry was not asked at all")
				}
			})
		})
	}
}

// R106: a token for reading reads, and is told that it may not publish; one that may publishes.
func TestReadOnlyToken(t *testing.T) {
	files := secretFiles(t, map[string]string{"tokens": "ci " + edgeToken + "\nreader " + readToken + " read", "npm": ownNPM, "mirror": ownMirror, "publish": ownPublish})
	yaml := files.Replace(strings.NewReplacer("MORE1", ", privateTokenFile: FILE:npm", "MORE2", ", privateAnonymous: true", "PUBLISH", ", tokenFile: FILE:publish").
		Replace(credentialMounts) + "auth: {tokensFile: FILE:tokens}")
	inWorld(t, yaml, func(w *world) {
		stockCredentials(w)
		w.want(w.get("/npm/a", "Authorization", bearer(readToken)), 200, -1)
		contentType, form := uploadForm(fakepypi.Wheel("acme-tool", "1.0"), nil)
		for token, want := range map[string][2]int{readToken: {403, 403}, edgeToken: {201, 200}} {
			put := w.send(http.MethodPut, corePath, publishDocument("@acme/core", nil), "Authorization", bearer(token))
			post := w.send(http.MethodPost, "/pypi/legacy/", form, "Content-Type", contentType, "Authorization", basic("x", token))
			if put.status != want[0] || post.status != want[1] {
				t.Errorf("%s: %d %s, %d %s", token, put.status, put.body, post.status, post.body)
			}
			if token == readToken && !strings.Contains(put.body, "this token may read and not publish") {
				t.Errorf("%s", put.body)
			}
		}
	})
}

// A private registry that refuses the gate's own credential is the operators' matter: the caller is
// not told that it is theirs, and the log warns.
func TestPrivateRefusesTheGate(t *testing.T) {
	for more, want := range map[string]string{
		", privateTokenFile: FILE:npm": "rejected the gate's own credential (401)", ", privateAnonymous: true": "asks for a credential (401), and this gate has none",
	} {
		files := secretFiles(t, map[string]string{"tokens": "ci " + edgeToken, "npm": ownNPM})
		inWorld(t, files.Replace("private"+more+"\nauth: {tokensFile: FILE:tokens}"), func(w *world) {
			w.private.Always(401)
			a := w.get("/npm/a", "Authorization", bearer(edgeToken))
			if a.status != 403 || !strings.Contains(a.body, want) || len(w.lines("request refused")) != 1 || w.lines("request refused")[0]["level"] != "WARN" {
				t.Errorf("%d %s; log %s", a.status, a.body, w.log)
			}
			w.sent(0)
		})
	}
	inWorld(t, "private\n", func(w *world) {
		w.private.Always(401)
		if a := w.get("/npm/a", "Authorization", bearer(callerToken)); a.status != 403 || !strings.Contains(a.body, "rejected this credential (401)") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

// R106: SIGHUP takes over what the files of credentials say, for reads, publications and the
// mirror; one for a registry at another address waits for the restart that brings the address.
func TestReloadCredentials(t *testing.T) {
	inWorld(t, "", func(w *world) {
		rec := stockCredentials(w)
		config := func(private, house, suffix string) string {
			files := secretFiles(t, map[string]string{
				"tokens": "ci " + edgeToken, "npm": ownNPM + suffix, "user": "ann", "password": ownPyPI + suffix, "mirror": ownMirror + suffix, "publish": ownPublish + suffix,
			})
			yaml := strings.NewReplacer("MORE1", ", privateTokenFile: FILE:npm", "MORE2", ", privateUsernameFile: FILE:user, privatePasswordFile: FILE:password",
				"PUBLISH", ", tokenFile: FILE:publish", "private.test", private, "house.test", house).Replace(credentialMounts)
			return files.Replace(yaml + "auth: {tokensFile: FILE:tokens}")
		}
		check := func(what, suffix string) {
			t.Helper()
			rec.mu.Lock()
			rec.all = nil
			rec.mu.Unlock()
			w.get("/npm/own", "Authorization", bearer(edgeToken))
			w.get("/pypi/simple/acme-tool/", "Authorization", bearer(edgeToken))
			w.send(http.MethodPut, corePath, publishDocument("@acme/core", nil), "Authorization", bearer(edgeToken))
			w.worker().Do(w.t.Context(), mirror.Job{Ecosystem: "npm", Package: "a", Version: "1.0.0", File: "a-1.0.0.tgz"})
			got := fmt.Sprint(rec.sides()[privateHost], rec.sides()[ownHost], rec.sides()[houseHost])
			want := fmt.Sprint([]string{bearer(ownNPM + suffix)}, []string{basic("ann", ownPyPI+suffix)}, []string{bearer(ownMirror + suffix), bearer(ownPublish + suffix)})
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		w.restart(config("private.test", "house.test", ""))
		check("at the start", "")
		w.app.Reload(w.t.Context(), w.config(config("private.test", "house.test", "-2")), nil)
		check("after a reload", "-2")
		w.app.Reload(w.t.Context(), w.config(strings.ReplaceAll(config("registry.test/own", "files.test", "-3"), "own.test", "index.test/own")), nil)
		check("for other addresses", "-2")
		lines := w.lines("changed settings need a restart; the gate goes on with their old values")
		if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["keys"]), "mounts.npm.private mounts.npm.mirror.url mounts.npm.publish.url mounts.pypi.private mounts.pypi.publish.url") {
			t.Errorf("%v", lines)
		}
		if strings.Contains(w.log.String(), ownNPM) || strings.Contains(w.log.String(), edgeToken) {
			t.Errorf("the log shows a secret: %s", w.log)
		}
	})
}
