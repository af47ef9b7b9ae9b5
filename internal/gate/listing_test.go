package gate

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/fake/toy"
	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

// failed is the error of a type that was expected.
func failed[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("%T: %v", err, err)
	}
	return e
}

// paused checks that a refusal names what remains of a cooldown (R35, R49).
func paused(t testing.TB, err error, seconds int64) *Unavailable {
	t.Helper()
	e := failed[*Unavailable](t, err)
	if !e.Cooldown || e.RetryAfter() != seconds || e.Authority != "registry.test:80" {
		t.Errorf("%+v: %v", e, err)
	}
	return e
}

func (w *world) version(name, selector string) (string, error) {
	w.t.Helper()
	l, err := w.gate.Version(w.t.Context(), ListingRequest{Name: name, Form: "full"}, selector)
	if err != nil {
		return "", err
	}
	return string(l.Body(documents.Identity)), nil
}

// The options of the mounts below.
func withPrivate(w *toy.World, o *Options) { o.Private = w.PrivateUpstream() }
func degrade(_ *toy.World, o *Options)     { o.DegradePrivate = true }
func linksOnly(_ *toy.World, o *Options)   { o.Ecosystem = linked() }
func strongDigests(_ *toy.World, o *Options) {
	o.MinPublic, o.MinTrusted = integrity.SHA256, integrity.SHA256
}

func firstParty(w *toy.World, o *Options) {
	p, err := policy.ParsePattern("npm:own", ecosystemtest.All())
	if err != nil {
		w.T.Fatal(err)
	}
	o.Ecosystem.Name, o.FirstParty = "npm", []policy.Pattern{p}
}

// want checks a listing.
func (w *world) want(name string, degraded Degradation, versions ...string) *Listing {
	w.t.Helper()
	l, got, err := w.listing(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if l.Degraded != degraded || !slices.Equal(got, versions) {
		w.t.Errorf("%v, degraded %q; want %v, %q", got, l.Degraded, versions, degraded)
	}
	return l
}

// C11: a listing, a version, an explanation and a file of one package have one verdict, and it
// follows the clock and the rules.
func TestOneVerdict(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.Public.Publish("a", "2.0.0", time.Now().Add(-23*time.Hour), nil)
		check := func(admitted bool) {
			t.Helper()
			versions := []string{"1.0.0"}
			if admitted {
				versions = append(versions, "2.0.0")
			}
			w.want("a", Complete, versions...)
			_, err := w.version("a", "2.0.0")
			_, _, err2 := w.file("a", "2.0.0")
			rows, err3 := w.gate.Explain(t.Context(), "a", "2.0.0", "")
			if err3 != nil || len(rows) != 1 || rows[0].Admit != admitted {
				t.Fatal(rows, err3)
			}
			if admitted {
				if err != nil || err2 != nil {
					t.Error(err, err2)
				}
				return
			}
			for _, err := range []error{err, err2} {
				if e := failed[*Denied](t, err); e.Verdict.Rule != "min-age" || !strings.Contains(err.Error(), "a@2.0.0 is not admitted") {
					t.Error(err)
				}
			}
		}
		check(false)
		time.Sleep(time.Hour) // it comes of age
		check(true)
		w.gate.SetPolicy(rules(t, 48*time.Hour))
		check(false)
		w.gate.SetPolicy(rules(t, time.Hour))
		check(true)
		if rows, err := w.gate.Explain(t.Context(), "a", "", ""); err != nil || len(rows) != 2 || rows[0].File != "" {
			t.Error(rows, err)
		}
		if body, err := w.version("a", "latest"); err != nil || !strings.Contains(body, "2.0.0") {
			t.Error(body, err)
		}
	})
}

// A listing with nothing to serve says why: what will be admitted first, or that nothing is there.
func TestNothingToServe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i, age := range []time.Duration{3, 23, 5} {
			w.Public.Publish("young", fmt.Sprintf("%d.0.0", i+1), time.Now().Add(-age*time.Hour), nil)
		}
		_, _, err := w.listing("young")
		if e := failed[*Denied](t, err); e.What != "young@2.0.0" || !e.Verdict.AdmittedAt.Equal(time.Now().Add(time.Hour)) {
			t.Errorf("%+v", e)
		}
		w.Public.SetDocument("empty", []byte("{}"))
		w.Public.SetDocument("useless", []byte(`{"versions": {"1": {}}}`))
		w.Public.SetDocument("weak", []byte(`{"versions": {"1": {"dist": {"tarball": "http://registry.test/weak/-/weak-1.tgz"}}}}`))
		_, _, err = w.listing("empty")
		failed[*NotFound](t, err)
		_, _, err = w.listing("useless")
		failed[*BadUpstream](t, err)
		_, _, err = w.listing("weak")
		_, _, err2 := w.file("weak", "1")
		rows, err3 := w.gate.Explain(t.Context(), "weak", "", "")
		if a, b := failed[*Denied](t, err), failed[*Denied](t, err2); a.Verdict.Rule != FloorRule || b.Verdict.Rule != FloorRule {
			t.Error(a, b)
		}
		if err3 != nil || rows[0].Rule != FloorRule {
			t.Error(rows, err3)
		}
		_, _, err = w.listing("none")
		if e := failed[*NotFound](t, err); e.Error() != "none is not in the registry" {
			t.Error(e)
		}
	}, strongDigests)
}

// R99, R35, R49: what is not fresh never says no: neither of a version, nor of a tag, nor of a
// file, nor of what nobody has read; and says yes to what it knows (R87). R40: a verdict on a
// version that it knows stays one.
func TestStaleSaysNoNo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		w.Public.Publish("a", "3.0.0", time.Now(), nil)
		w.want("a", Complete, "1.0.0")
		w.Public.Publish("a", "2.0.0", toy.LongAgo, nil)
		time.Sleep(30 * time.Minute)
		w.Throttle(600)
		_, _, err := w.listing("trigger")
		if e := paused(t, err, 600); !e.Forwarded {
			t.Errorf("%+v", e)
		}
		time.Sleep(10 * time.Second)
		sent := w.Public.Count()
		l := w.want("a", DegradedRetained, "1.0.0")
		if l.Cooldown == nil || l.Cooldown.RetryAfter() != 590 {
			t.Errorf("%+v", l.Cooldown)
		}
		refusedAt := func(wait int64) {
			t.Helper()
			_, _, err := w.file("a", "2.0.0")
			paused(t, err, wait)
			for _, selector := range []string{"2.0.0", "next"} {
				_, err = w.version("a", selector)
				if e := paused(t, err, wait); !strings.Contains(e.Reason, "is in the registry is unknown for now") {
					t.Error(e)
				}
			}
			for _, version := range []string{"2.0.0", "9"} {
				_, err = w.gate.Explain(t.Context(), "a", version, "")
				paused(t, err, wait)
			}
			_, err = w.gate.Fetch(t.Context(), "a", toy.File("a", "2.0.0"), "")
			paused(t, err, wait)
			_, err = w.gate.FilesOf(t.Context(), "a", func(v string) bool { return v == "2.0.0" })
			paused(t, err, wait)
			_, _, err = w.listing("new")
			paused(t, err, wait)
		}
		refusedAt(590)
		if _, err := w.version("a", "1.0.0"); err != nil {
			t.Error(err)
		}
		_, err = w.version("a", "3.0.0")
		failed[*Denied](t, err)
		w.Sent(sent)
		time.Sleep(590 * time.Second)
		w.Public.Answer(nil)
		w.want("a", Complete, "1.0.0", "2.0.0")
		_, err = w.version("a", "next")
		failed[*NotFound](t, err)
		_, _, err = w.file("a", "9")
		failed[*NotFound](t, err)
		if got := w.Metric(`ecluse_degraded_listings_total{ecosystem="toy",reason="retained"}`); got != "2" {
			t.Errorf("%s retained", got)
		}
	})
}

// R99: an absence is believed for a moment after a read, and then asked about once for everybody.
func TestFreshAbsence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
		absent := func() {
			t.Helper()
			_, err := w.version("a", "2.0.0")
			failed[*NotFound](t, err)
			_, _, err = w.file("a", "2.0.0")
			failed[*NotFound](t, err)
		}
		absent()
		time.Sleep(missTTL - 1)
		absent()
		w.Sent(1)
		time.Sleep(time.Nanosecond)
		absent()
		w.Sent(2)
		time.Sleep(missTTL)
		w.Public.Publish("a", "2.0.0", toy.LongAgo, nil)
		if body, err := w.version("a", "2.0.0"); err != nil || !strings.Contains(body, "2.0.0") {
			t.Error(body, err)
		}
		time.Sleep(missTTL)
		w.Public.Always(http.StatusInternalServerError)
		_, err := w.version("a", "3.0.0")
		if e := failed[*Unavailable](t, err); e.Cooldown || e.RetryAfter() != 1 {
			t.Errorf("%+v", e)
		}
		_, err = w.gate.Explain(t.Context(), "a", "3.0.0", "")
		failed[*Unavailable](t, err)
	})
}

// Private versions win, and are served beside what the rules admit; what differs is said. R43:
// while the public side cools or fails they are served alone, marked so that they never answer for
// the whole.
func TestMergedListing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 3000 { // large enough to be packed in runs
			w.Public.Publish("a", fmt.Sprintf("1.%04d.0", i), toy.LongAgo, nil)
		}
		w.Public.Publish("a", "2.0.0", time.Now(), nil)
		w.Private.Publish("a", "3.0.0", time.Time{}, nil)
		w.Private.Publish("a", "1.0001.0", time.Time{}, map[string]any{"dist": map[string]any{"tarball": "http://private.test/x", "integrity": "sha512-AAAA"}})
		l, versions, err := w.listing("a")
		if err != nil || len(versions) != 3001 || versions[3000] != "3.0.0" {
			t.Fatal(len(versions), err)
		}
		if len(l.Body(documents.Gzip)) >= len(l.Body(documents.Identity)) || l.As("text/plain").ContentType() != "text/plain" {
			t.Error("not packed")
		}
		if got := w.Metric(`ecluse_merge_divergence_total{ecosystem="toy"}`); got != "1" || !w.Logged("different files for the same version") {
			t.Errorf("%s differ", got)
		}
		if body, err := w.version("a", "3.0.0"); err != nil || body == "" {
			t.Error(err)
		}
		w.Private.Publish("b", "1.0.0", time.Time{}, nil)
		w.Public.Publish("b", "2.0.0", toy.LongAgo, nil)
		whole := w.want("b", Complete, "1.0.0", "2.0.0")
		w.Private.Publish("c", "1.0.0", time.Time{}, nil)
		w.want("c", Complete, "1.0.0")
		time.Sleep(2 * time.Hour)
		w.Public.Always(http.StatusInternalServerError)
		if part := w.want("b", DegradedTransient, "1.0.0"); part.ETag(documents.Identity) == w.want("c", DegradedTransient, "1.0.0").ETag(documents.Gzip) ||
			part.ETag(documents.Identity) == whole.ETag(documents.Identity) {
			t.Error("its tags are those of another")
		}
		w.Throttle(60)
		if part := w.want("b", DegradedCooldown, "1.0.0"); part.Cooldown.RetryAfter() != 60 || !strings.HasPrefix(part.ETag(documents.Identity), `"d`) {
			t.Errorf("%+v", part.Cooldown)
		}
		_, err = w.version("b", "2.0.0")
		paused(t, err, 60)
		_, _, err = w.listing("d")
		paused(t, err, 60)
	}, withPrivate)
}

// R41, R44, R93: what the private side refuses is not asked of the public one; where it fails, that
// is the answer, with the longer wait of two, unless the mount goes on without it: then nothing is
// absent that it may hold.
func TestPrivateFails(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		options := []option{withPrivate, firstParty}
		if goesOn {
			options = append(options, degrade)
		}
		inWorld(t, func(t *testing.T, w *world) {
			w.Public.Publish("a", "1.0.0", toy.LongAgo, nil)
			w.Private.Always(http.StatusForbidden)
			_, _, err := w.listing("a")
			failed[*Forbidden](t, err)
			_, _, err = w.file("a", "1.0.0")
			if e := failed[*Forbidden](t, err); !strings.Contains(e.Error(), "403") {
				t.Error(e)
			}
			w.Sent(0)
			w.Private.Always(http.StatusServiceUnavailable, "Retry-After", "30")
			_, _, err = w.listing("own")
			if e := failed[*Unavailable](t, err); e.Cooldown || e.RetryAfter() != 30 {
				t.Errorf("%+v", e)
			}
			_, _, err = w.file("own", "1.0.0")
			failed[*Unavailable](t, err)
			w.Sent(0)
			_, _, err = w.listing("a")
			_, _, err2 := w.file("a", "1.0.0")
			if goesOn {
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				w.want("a", DegradedPrivate, "1.0.0")
				for _, name := range []string{"absent", "a"} {
					_, err = w.version(name, "2.0.0")
					failed[*Unavailable](t, err)
					_, _, err = w.file(name, "2.0.0")
					failed[*Unavailable](t, err)
				}
			} else if failed[*Unavailable](t, err); failed[*Unavailable](t, err2).RetryAfter() != 30 {
				t.Error(err2)
			}
			w.Throttle(600)
			_, err = w.gate.Explain(t.Context(), "b", "", "")
			paused(t, err, 600)
			_, _, err = w.listing("b")
			paused(t, err, 600) // the longer one
			_, _, err = w.file("b", "1.0.0")
			paused(t, err, 600)
			w.Private.Always(http.StatusTeapot)
			_, _, err = w.listing("b")
			failed[*BadUpstream](t, err)
		}, options...)
	}
}

// First-party names resolve privately only, and private versions answer to the floor alone.
func TestFirstParty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Public.Publish("own", "9.0.0", toy.LongAgo, nil)
		_, _, err := w.listing("own")
		failed[*NotFound](t, err)
		_, _, err = w.file("own", "9.0.0")
		failed[*NotFound](t, err)
		_, err = w.gate.Fetch(t.Context(), "own", toy.File("own", "9.0.0"), "")
		failed[*NotFound](t, err)
		_, err = w.gate.FilesOf(t.Context(), "own", func(string) bool { return true })
		failed[*NotFound](t, err)
		w.Private.Publish("own", "1.0.0", time.Time{}, nil)
		w.want("own", Complete, "1.0.0")
		w.Private.SetDocument("own", []byte(`{"versions": {"1": {"dist": {"tarball": "http://private.test/own/-/own-1.tgz"}}}}`))
		_, _, err = w.listing("own")
		failed[*Denied](t, err)
		_, err = w.version("own", "1")
		failed[*Denied](t, err)
		_, _, err = w.file("own", "1")
		failed[*Denied](t, err)
		w.Private.SetDocument("own", []byte(`{"versions": {"1": {}}}`))
		_, _, err = w.listing("own")
		failed[*BadUpstream](t, err)
		w.Private.SetDocument("own", []byte(`{}`))
		_, _, err = w.listing("own")
		failed[*NotFound](t, err)
		w.Sent(0)
	}, withPrivate, firstParty, strongDigests)
}

// The list of all packages joins what both sides have, and obeys the cooldown as a listing does
// (R43, R87, R99).
func TestIndex(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		index := func(degraded Degradation, names ...string) *Projects {
			t.Helper()
			p, err := w.gate.Index(t.Context(), "")
			if err != nil || p.Degraded != degraded || !slices.Equal(p.Names, names) {
				t.Fatal(p, err)
			}
			return p
		}
		_, err := w.gate.Index(t.Context(), "")
		failed[*NotFound](t, err)
		w.Private.SetDocument("", []byte(`["own", "a"]`))
		index(Complete, "a", "own")
		w.Public.SetDocument("", []byte(`["b", "a"]`))
		index(Complete, "a", "b", "own")
		time.Sleep(2 * time.Minute)
		w.Throttle(600)
		if p := index(DegradedRetained, "a", "b", "own"); p.Cooldown.RetryAfter() != 600 || p.Cooldown.Part != "index" {
			t.Errorf("%+v", p.Cooldown)
		}
		w.Private.Always(http.StatusInternalServerError)
		_, err = w.gate.Index(t.Context(), "")
		paused(t, err, 600)
		w.Private.Answer(nil)
		time.Sleep(time.Hour)
		index(DegradedCooldown, "a", "own")
		w.Public.Always(http.StatusInternalServerError)
		time.Sleep(time.Hour)
		index(DegradedTransient, "a", "own")
		w.Private.SetDocument("", []byte("no list"))
		_, err = w.gate.Index(t.Context(), "")
		failed[*BadUpstream](t, err)
		w.Private.Always(http.StatusNotFound)
		_, err = w.gate.Index(t.Context(), "")
		failed[*Unavailable](t, err)
	}, linksOnly, withPrivate)
	inWorld(t, func(t *testing.T, w *world) { // an empty list is a no
		w.Public.SetDocument("", []byte(`[]`))
		w.Private.Always(http.StatusInternalServerError)
		_, err := w.gate.Index(t.Context(), "")
		failed[*Unavailable](t, err)
		w.Public.SetDocument("", []byte(`["a"]`))
		time.Sleep(time.Minute)
		if p, err := w.gate.Index(t.Context(), ""); err != nil || p.Degraded != DegradedPrivate || len(p.Names) != 1 {
			t.Error(p, err)
		}
	}, linksOnly, withPrivate, degrade)
}
