package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Spec describes one rule of a Set. Fields that the rule's type does not use must be zero.
type Spec struct {
	// Name is unique within a Set.
	Name string
	// Type is one of Types.
	Type string
	// Precedence orders rules, the highest first; 0 means the type's default.
	Precedence int
	// Ecosystems limits the rule; empty means all.
	Ecosystems []string
	// Age is how long ago a version must have been published (AllowIfOlderThan).
	Age time.Duration
	// Packages are patterns: "name", "@scope/*", "name@1.2.3", each optionally with an ecosystem in
	// front, "eco:name" (AllowByIdentity, DenyByIdentity).
	Packages []string
	// Scopes are scopes of names, "@acme" (AllowScope).
	Scopes []string
	// MinCVSS is the base score from which on an advisory counts, 0 to 10; 0 means every advisory.
	// Malware reports always count (DenyIfAdvisory).
	MinCVSS float64
	// OnUnavailable says what missing advisory data means: "deny", which is also meant by "", or
	// "skip" (DenyIfAdvisory).
	OnUnavailable string
	// Except are patterns of packages that the rule leaves alone (DenyInstallTimeExecution).
	Except []string
	// Date is the last publish time that is not too new (NotAfter).
	Date time.Time
	// Licenses are SPDX identifiers, with "WITH exception" if need be, or the word UNLICENSED
	// (DenyUnlessLicense, LicenseDeny).
	Licenses []string
	// OnUnknown says what a missing or unreadable licence means: "deny", which is also meant by "",
	// or "skip" (DenyUnlessLicense, LicenseDeny).
	OnUnknown string
}

// The rule types.
const (
	// AllowIfOlderThan admits what was published long enough ago. A version of unknown age is never
	// admitted by it.
	AllowIfOlderThan = "AllowIfOlderThan"
	// AllowUndated admits versions whose upstream does not say when they were published: the
	// fallback for indexes without dates.
	AllowUndated = "AllowUndated"
	// AllowIfRemediates admits a version that an advisory names as its exact fix and that no
	// advisory affects.
	AllowIfRemediates = "AllowIfRemediates"
	// AllowScope admits every package of a scope, in every ecosystem that has scopes.
	AllowScope = "AllowScope"
	// DenyIfAdvisory denies what an advisory of a minimum score, or a malware report, affects.
	DenyIfAdvisory = "DenyIfAdvisory"
	// DenyUnlessLicense denies what cannot be used under the listed licences alone.
	DenyUnlessLicense = "DenyUnlessLicense"
	// LicenseDeny denies what cannot be used without one of the listed licences.
	LicenseDeny = "LicenseDeny"
	// NotAfter denies what was published after a date, or at an unknown time.
	NotAfter = "NotAfter"
	// AllowByIdentity admits what its patterns name.
	AllowByIdentity = "AllowByIdentity"
	// DenyInstallTimeExecution denies versions whose installation runs code of the package.
	DenyInstallTimeExecution = "DenyInstallTimeExecution"
	// DenyByIdentity denies what its patterns name.
	DenyByIdentity = "DenyByIdentity"
)

// The values of Spec.OnUnavailable and Spec.OnUnknown.
const (
	Deny = "deny"
	Skip = "skip"
)

// The fields that only some types have, as the configuration spells them.
const (
	FieldAge           = "age"
	FieldPackages      = "packages"
	FieldScopes        = "scopes"
	FieldMinCVSS       = "minCVSS"
	FieldOnUnavailable = "onUnavailable"
	FieldExcept        = "except"
	FieldDate          = "date"
	FieldLicenses      = "licenses"
	FieldOnUnknown     = "onUnknown"
)

// kind is one rule type.
type kind struct {
	name       string
	precedence int
	fields     []string
	build      func(Spec, registry.Ecosystems) (rule, error)
}

// kinds lists the types by default precedence. An allow-list of packages (250) beats age, freeze
// date, licences and advisories, but neither the ban on install scripts, which has exceptions of
// its own, nor the deny-list. The freeze date stands above everything that admits without naming a
// package, so that it and the age combine: the stricter wins (C79).
func kinds() []kind {
	return []kind{
		{AllowUndated, 90, nil, func(Spec, registry.Ecosystems) (rule, error) { return undated{}, nil }},
		{AllowIfOlderThan, 100, []string{FieldAge}, buildOlderThan},
		{AllowIfRemediates, 150, nil, func(Spec, registry.Ecosystems) (rule, error) { return remediates{}, nil }},
		{AllowScope, 200, []string{FieldScopes}, buildScope},
		{DenyIfAdvisory, 225, []string{FieldMinCVSS, FieldOnUnavailable}, buildAdvised},
		{DenyUnlessLicense, 230, []string{FieldLicenses, FieldOnUnknown}, buildLicense},
		{LicenseDeny, 235, []string{FieldLicenses, FieldOnUnknown}, buildLicense},
		{NotAfter, 240, []string{FieldDate}, buildNotAfter},
		{AllowByIdentity, 250, []string{FieldPackages}, buildIdentity},
		{DenyInstallTimeExecution, 300, []string{FieldExcept}, buildInstallCode},
		{DenyByIdentity, 400, []string{FieldPackages}, buildIdentity},
	}
}

func kindOf(typ string) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == typ })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// Types are the names of the rule types, by rising default precedence.
func Types() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Renamed returns the present name of a type that had another one.
func Renamed(typ string) (name string, ok bool) {
	if typ == "LicenseAllow" {
		return DenyUnlessLicense, true
	}
	return typ, false
}

// Fields are the fields that a type has beside name, type, precedence and ecosystems.
func Fields(typ string) []string {
	k, _ := kindOf(typ)
	return slices.Clone(k.fields)
}

// Admitting reports whether rules of a type can admit anything.
func Admitting(typ string) bool { return strings.HasPrefix(typ, "Allow") }

// ReadsAdvisories reports whether rules of a type read advisory data.
func ReadsAdvisories(typ string) bool { return typ == DenyIfAdvisory || typ == AllowIfRemediates }

// DefaultPrecedence is the precedence of a type whose Spec gives none.
func DefaultPrecedence(typ string) (int, bool) {
	k, ok := kindOf(typ)
	return k.precedence, ok
}

func build(s Spec, known registry.Ecosystems) (rule, error) {
	k, ok := kindOf(s.Type)
	if !ok {
		return nil, fmt.Errorf("unknown type %q: use %s", s.Type, strings.Join(Types(), ", "))
	}
	if s.Precedence < 0 {
		return nil, fmt.Errorf("precedence %d is negative", s.Precedence)
	}
	for _, field := range s.given() {
		if !slices.Contains(k.fields, field) {
			return nil, fmt.Errorf("%s has no %s", s.Type, field)
		}
	}
	for _, e := range s.Ecosystems {
		if err := known.Check(e); err != nil {
			return nil, err
		}
	}
	return k.build(s, known)
}

// given lists the fields that are not zero.
func (s Spec) given() []string {
	var names []string
	for _, f := range []struct {
		name  string
		given bool
	}{
		{FieldAge, s.Age != 0},
		{FieldPackages, len(s.Packages) > 0},
		{FieldScopes, len(s.Scopes) > 0},
		{FieldMinCVSS, s.MinCVSS != 0},
		{FieldOnUnavailable, s.OnUnavailable != ""},
		{FieldExcept, len(s.Except) > 0},
		{FieldDate, !s.Date.IsZero()},
		{FieldLicenses, len(s.Licenses) > 0},
		{FieldOnUnknown, s.OnUnknown != ""},
	} {
		if f.given {
			names = append(names, f.name)
		}
	}
	return names
}

// denies reads the choice between deny and skip.
func denies(field, choice string) (bool, error) {
	switch choice {
	case "", Deny:
		return true, nil
	case Skip:
		return false, nil
	}
	return false, fmt.Errorf("%s is %q: use %s or %s", field, choice, Deny, Skip)
}
