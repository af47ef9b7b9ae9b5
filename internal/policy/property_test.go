package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

var drawnNames = []string{"a", "b", "@s/a", "broken"}

// drawSpec draws a rule of any type.
func drawSpec(t *rapid.T, name string) Spec {
	s := Spec{Name: name, Type: rapid.SampledFrom(Types()).Draw(t, "type"), Precedence: rapid.IntRange(0, 3).Draw(t, "precedence")}
	if rapid.Bool().Draw(t, "limited") {
		s.Ecosystems = []string{rapid.SampledFrom([]string{"npm", "pypi"}).Draw(t, "ecosystem")}
	}
	choice := rapid.SampledFrom([]string{"", Deny, Skip}).Draw(t, "choice")
	pattern := []string{rapid.SampledFrom([]string{"a", "b", "@s/*", "npm:a", "a@1"}).Draw(t, "pattern")}
	switch s.Type {
	case AllowIfOlderThan:
		s.Age = time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Hour
	case AllowByIdentity, DenyByIdentity:
		s.Packages = pattern
	case DenyInstallTimeExecution:
		s.Except = pattern
	case AllowScope:
		s.Scopes = []string{"@s"}
	case DenyIfAdvisory:
		s.MinCVSS, s.OnUnavailable = float64(rapid.IntRange(0, 10).Draw(t, "minimum")), choice
	case NotAfter:
		s.Date = now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "date")) * time.Hour)
	case DenyUnlessLicense, LicenseDeny:
		s.Licenses, s.OnUnknown = []string{rapid.SampledFrom([]string{"MIT", "ISC"}).Draw(t, "licence")}, choice
	}
	return s
}

func drawSubject(t *rapid.T) Subject {
	s := subject(rapid.SampledFrom(drawnNames).Draw(t, "name"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"), time.Time{})
	if rapid.IntRange(0, 5).Draw(t, "known age") > 0 {
		s.Version.Published = now.Add(-time.Duration(rapid.IntRange(-2, 20).Draw(t, "hours")) * time.Hour)
	}
	s.Package.Ecosystem = rapid.SampledFrom([]string{"npm", "pypi"}).Draw(t, "of")
	s.Version.InstallScripts = rapid.Bool().Draw(t, "scripts")
	s.Version.License = rapid.SampledFrom([]string{"", "MIT", "ISC", "MIT OR ISC", "?"}).Draw(t, "license")
	return s
}

func drawData(t *rapid.T) Advisories {
	if rapid.IntRange(0, 3).Draw(t, "data") == 0 {
		return nil
	}
	d := data{"npm": nil}
	for range rapid.IntRange(0, 3).Draw(t, "advisories") {
		key := "npm:" + rapid.SampledFrom(drawnNames).Draw(t, "advised") + "@1"
		fixes := rapid.Bool().Draw(t, "fixes")
		d[key] = append(d[key], registry.Advisory{
			ID: "A", Malware: rapid.Bool().Draw(t, "malware"), Affects: !fixes, Fixes: fixes, Scored: true,
			Score: float64(rapid.IntRange(0, 10).Draw(t, "score")),
		})
	}
	return d
}

func drawSpecs(t *rapid.T) []Spec {
	specs := []Spec{}
	for i := range rapid.IntRange(0, 6).Draw(t, "rules") {
		specs = append(specs, drawSpec(t, string(rune('a'+i))))
	}
	return specs
}

func build2(t *rapid.T, specs []Spec, d Advisories) *Set {
	set, err := New(specs, ecosystemtest.All())
	if err != nil {
		t.Fatal(err)
	}
	return set.WithAdvisories(d)
}

// Shuffling rules changes nothing: there is one total order.
func TestShufflingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs, d, s := drawSpecs(t), drawData(t), drawSubject(t)
		want := build2(t, specs, d).Evaluate(now, s)
		rand.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		if got := build2(t, specs, d).Evaluate(now, s); got != want {
			t.Fatalf("shuffled: %+v, want %+v", got, want)
		}
	})
}

// Adding a rule that denies never admits more.
func TestAddingADenyNeverAdmitsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs, d, s := drawSpecs(t), drawData(t), drawSubject(t)
		without := build2(t, specs, d)
		more := drawSpec(t, "zz")
		if Admitting(more.Type) {
			t.Skip("no deny")
		}
		with := build2(t, append(specs, more), d)
		if with.Evaluate(now, s).Admit && !without.Evaluate(now, s).Admit {
			t.Fatalf("adding %+v admitted %+v", more, s)
		}
	})
}

// Rules without data never admit what they refuse with data, unless told to skip; and nothing is
// admitted where no rule admits.
func TestMissingDataNeverAdmitsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs, d, s := drawSpecs(t), drawData(t), drawSubject(t)
		allows := false
		for _, spec := range specs {
			if spec.OnUnavailable == Skip {
				t.Skip("skips on purpose")
			}
			allows = allows || Admitting(spec.Type)
		}
		with, without := build2(t, specs, d).Evaluate(now, s), build2(t, specs, nil).Evaluate(now, s)
		if without.Admit && !with.Admit {
			t.Fatalf("admitted without data (%+v), refused with it (%+v)", without, with)
		}
		if !allows && with.Admit {
			t.Fatalf("admitted by nothing: %+v", with)
		}
	})
}

// C11, C77: there is one verdict. The short form, which listings use, and the long one, which
// artifacts use, never differ; and the instant of admission that a denial names is kept: nothing
// changes before it, and at it the version is admitted.
func TestC11C77OneVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, s := build2(t, drawSpecs(t), drawData(t)), drawSubject(t)
		v := set.Evaluate(now, s)
		ok, rule, at := set.Admits(now, s)
		if ok != v.Admit || rule != v.Rule || !at.Equal(v.AdmittedAt) {
			t.Fatalf("Admits = %v %s %v, Evaluate = %+v", ok, rule, at, v)
		}
		if v.Rule == "" || v.Reason == "" || v.Admit && (v.Temporary || !at.IsZero()) {
			t.Fatalf("a verdict that does not explain itself: %+v", v)
		}
		if !at.IsZero() && !v.Temporary {
			if ok, _, _ := set.Admits(at, s); !ok {
				t.Fatalf("%+v, and it is not admitted then", v)
			}
			if ok, _, _ := set.Admits(at.Add(-1), s); ok {
				t.Fatalf("%+v, and it is admitted before", v)
			}
		}
		if later, _, _ := set.Admits(now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "later"))*time.Hour), s); later && !v.Admit && at.IsZero() {
			t.Fatalf("%+v, and time alone admits it", v)
		}
	})
}

// The short form does not allocate, whatever rules are there, unless an advisory is found.
func TestAdmitsDoesNotAllocate(t *testing.T) {
	set := mustSet(t, week, Spec{Name: "ban", Type: DenyByIdentity, Packages: []string{"bad", "@evil/*"}},
		Spec{Name: "scripts", Type: DenyInstallTimeExecution}, Spec{Name: "freeze", Type: NotAfter, Date: now},
		Spec{Name: "scope", Type: AllowScope, Scopes: []string{"@acme"}}, Spec{Name: "licence", Type: DenyUnlessLicense, Licenses: []string{"MIT"}})
	for _, s := range []Subject{subject("x", "1", now), subject("x", "1", time.Time{}), subject("bad", "1", old), subject("@acme/x", "1", old)} {
		for _, s.Version.License = range []string{"MIT", "ISC"} {
			if n := testing.AllocsPerRun(100, func() { set.Admits(now, s) }); n != 0 {
				t.Errorf("%+v: Admits allocates %v times", s, n)
			}
		}
	}
}

func BenchmarkAdmits(b *testing.B) {
	for _, n := range []int{1, 10} {
		specs := []Spec{week}
		for i := 1; i < n; i++ {
			specs = append(specs, Spec{Name: fmt.Sprint(i), Type: DenyByIdentity, Packages: []string{fmt.Sprintf("@scope%d/*", i)}})
		}
		set, s := mustSet(b, specs...), subject("left-pad", "1.3.0", old)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.Admits(now, s)
			}
		})
	}
}
