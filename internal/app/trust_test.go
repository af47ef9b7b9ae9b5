package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// copied is a world in which the private registry has a copy of a public version, as the mirror
// makes them, beside a version of its own.
func copied(w *world) {
	w.public.Publish("a", "1.0.0", longAgo, nil)
	w.public.Publish("a", "1.1.0", longAgo, nil)
	w.private.Publish("a", "1.0.0", time.Now().Add(-time.Minute), nil)
	w.private.Publish("@acme/core", "1.0.0", time.Now(), nil)
	w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 200, -1)
	w.want(w.get("/npm/@acme%2fcore/-/core-1.0.0.tgz"), 200, -1)
}

const acme = withPrivate + ", firstParty: ['@acme/*']\n"

// gone checks that no road leads to the copy any more, and that the other version stays.
func (w *world) gone(rule string) {
	w.t.Helper()
	a := w.get("/npm/a")
	w.want(a, 200, -1)
	if strings.Contains(a.body, `"1.0.0":{`) || !strings.Contains(a.body, `"1.1.0":{`) {
		w.t.Errorf("%.300s", a.body)
	}
	for _, path := range []string{"/npm/a/-/a-1.0.0.tgz", "/npm/a/1.0.0"} {
		if a := w.get(path); a.status != 403 || !strings.Contains(a.body, rule) {
			w.t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
	w.want(w.get("/npm/@acme%2fcore/-/core-1.0.0.tgz"), 200, -1) // first-party
}

// R105: a deny rule that comes with a reload takes back what the mirror copied, at once,
// everywhere, also while the public authority cools and at a gate that starts; the public file does
// not take its place.
func TestDenyTakesCopiesBack(t *testing.T) {
	const deny = acme + "rules: {ban: {type: DenyByIdentity, packages: ['a@1.0.0']}}"
	inWorld(t, acme, func(w *world) {
		copied(w)
		w.app.Reload(w.t.Context(), w.config(deny), nil)
		w.gone(`\"ban\"`)
		w.public.Always(429, "Retry-After", "300")
		time.Sleep(2 * time.Minute)
		_ = w.get("/npm/a")
		if a := w.get("/npm/a/-/a-1.0.0.tgz"); a.status != 403 {
			w.t.Errorf("while the authority cools: %d %.200s", a.status, a.body)
		}
		w.app.Reload(w.t.Context(), w.config(acme), nil)
		w.want(w.get("/npm/a/-/a-1.0.0.tgz"), 200, -1)
	})
	inWorld(t, deny, func(w *world) { // at a second gate
		w.public.Publish("a", "1.1.0", longAgo, nil)
		w.private.Publish("a", "1.0.0", time.Now(), nil)
		w.private.Publish("@acme/core", "1.0.0", time.Now(), nil)
		w.gone(`\"ban\"`)
	})
}

// R105: advisories judge copies, from the refresh on that brings them.
func TestAdvisoryTakesCopiesBack(t *testing.T) {
	source := t.TempDir()
	yaml := acme + "advisories: {source: '" + source + "', interval: 1m}\nrules: {known-bad: {type: DenyIfAdvisory, minCVSS: 7, ecosystems: [npm]}}"
	advise := func(name string) {
		t.Helper()
		text := strings.Replace(badAdvisory, `"name":"a"`, `"name":"`+name+`"`, 1)
		if err := os.WriteFile(filepath.Join(source, "GHSA-test-0001.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	advise("another")
	w := newWorld(t, yaml)
	if err := w.app.rules.advisories().Refresh(t.Context(), "npm"); err != nil {
		t.Fatal(err)
	}
	copied(w)
	advise("a")
	if err := w.app.rules.advisories().Refresh(t.Context(), "npm"); err != nil {
		t.Fatal(err)
	}
	w.gone("known-bad")
	w.app.Close()
}

// R105: the same for a Python index, whose entries are files.
func TestDenyTakesPythonCopiesBack(t *testing.T) {
	const index = "pypi, private: 'http://" + ownHost + "/simple/', firstParty: [acme-tool]\n"
	inWorld(t, index+"rules: {ban: {type: DenyByIdentity, packages: ['pypi:tool@1.0']}, freeze: {type: NotAfter, date: 1999-06-01}}", func(w *world) {
		wheel := fakepypi.Wheel("tool", "1.1", fakepypi.UploadedAt(longAgo))
		w.pypi.Publish("tool", wheel)
		late := wheel
		late.Uploaded = time.Now() // the copy's
		w.pypiOwn.Publish("tool", fakepypi.Wheel("tool", "1.0", fakepypi.UploadedAt(longAgo)), late)
		w.pypiOwn.Publish("acme-tool", fakepypi.Wheel("acme-tool", "1.0"))
		a := w.get("/pypi/simple/tool/")
		w.want(a, 200, -1)
		if strings.Contains(a.body, "tool-1.0-") || !strings.Contains(a.body, "tool-1.1-") {
			t.Errorf("%s", a.body)
		}
		for path, status := range map[string]int{"tool-1.0-py3-none-any.whl": 403, "tool-1.1-py3-none-any.whl": 200} {
			if a := w.get("/pypi/files/tool/" + path); a.status != status {
				t.Errorf("%s: %d %.200s", path, a.status, a.body)
			}
		}
		w.want(w.get("/pypi/simple/acme-tool/"), 200, -1)
	})
}

// R105: a freeze date judges a copy by the publish time of its original, which the day of the
// copying is not. While that cannot be read nobody says no, and a version that is nobody's copy has
// its own time.
func TestFreezeJudgesCopiesByTheirOriginal(t *testing.T) {
	const freeze = acme + "rules: {freeze: {type: NotAfter, date: 1999-06-01}}"
	inWorld(t, freeze, func(w *world) {
		copied(w)
		w.private.Publish("a", "2.0.0", time.Now(), nil) // nobody's copy
		if a := w.get("/npm/a/-/a-2.0.0.tgz"); a.status != 403 || !strings.Contains(a.body, "freeze") {
			w.t.Errorf("%d %.200s", a.status, a.body)
		}
		if a := w.get("/npm/a"); strings.Contains(a.body, `"2.0.0":{`) || !strings.Contains(a.body, `"1.0.0":{`) {
			w.t.Errorf("%.300s", a.body)
		}
	})
	inWorld(t, freeze, func(w *world) {
		w.public.Always(429, "Retry-After", "300")
		w.private.Publish("a", "1.0.0", time.Now(), nil)
		for _, path := range []string{"/npm/a/-/a-1.0.0.tgz", "/npm/a/1.0.0"} {
			if a := w.get(path); a.status != 503 || a.header.Get("Retry-After") == "" {
				w.t.Errorf("%s: %d %.200s", path, a.status, a.body)
			}
		}
	})
}

// Rules that admit trust the private registry, unless privateRules says that all rules judge it.
func TestPrivateRules(t *testing.T) {
	for _, mode := range []struct {
		keys   string
		status int
	}{{"", 200}, {", privateRules: deny", 200}, {", privateRules: all", 403}} {
		inWorld(t, withPrivate+mode.keys+", firstParty: ['@acme/*']\n", func(w *world) {
			w.private.Publish("young", "1.0.0", time.Now(), nil)
			w.private.Publish("@acme/core", "1.0.0", time.Now(), nil)
			w.want(w.get("/npm/young/-/young-1.0.0.tgz"), mode.status, -1)
			w.want(w.get("/npm/young"), mode.status, -1)
			w.want(w.get("/npm/@acme%2fcore"), 200, -1)
		})
	}
}

// R105: explain shows both sides, and what a client meets.
func TestExplainBothSides(t *testing.T) {
	inWorld(t, acme+"rules: {ban: {type: DenyByIdentity, packages: ['a@1.0.0']}}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("a", "1.1.0", longAgo, nil)
		w.private.Publish("a", "1.0.0", time.Now(), nil)
		w.private.Publish("a", "9.0.0", time.Now(), nil)
		_, rows := w.explain("npm:a")
		var got []string
		for _, r := range rows {
			verdict := r.From + " " + r.Version + " " + r.Rule
			if r.Admit {
				verdict += " admitted"
			}
			if r.Hidden {
				verdict += " hidden"
			}
			got = append(got, verdict)
		}
		want := "private 1.0.0 ban, private 9.0.0 private admitted, public 1.0.0 ban hidden, public 1.1.0 min-age admitted"
		if strings.Join(got, ", ") != want {
			t.Errorf("%s\nwant %s", strings.Join(got, ", "), want)
		}
		if _, rows := w.explain("npm:a@9.0.0"); len(rows) != 1 || !rows[0].Admit || rows[0].From != "private" {
			t.Errorf("%+v", rows)
		}
	})
}
