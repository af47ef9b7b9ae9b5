package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/github/go-spdx/v2/spdxexp"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Bounds of what is read as a licence expression: reading one costs time that grows fast with its
// choices.
const (
	maxLicenseLength = 256
	maxLicenseTerms  = 8
	maxLicenseMemo   = 1024 // distinct spellings whose answer is kept
)

// unlicensed is npm's word for "no licence is granted"; it is no SPDX identifier and may be listed
// all the same.
const unlicensed = "UNLICENSED"

// license denies by what a version's licence expression allows: with allowOnly, what the listed
// licences do not suffice for; without, what needs one of them.
type license struct {
	listed      []string
	allowOnly   bool
	denyUnknown bool
	memo        *atomic.Pointer[map[string]licensed]
}

// licensed is the result for one spelling of a licence.
type licensed uint8

const (
	fine licensed = iota
	refused
	unreadable
)

func buildLicense(s Spec, _ registry.Ecosystems) (rule, error) {
	if len(s.Licenses) == 0 {
		return nil, fmt.Errorf("%s needs licenses, as in MIT", s.Type)
	}
	for _, l := range s.Licenses {
		if ok, _ := spdxexp.ValidateLicensesWithOptions([]string{l}, spdxexp.ValidateLicensesOptions{FailComplexExpressions: true}); !ok && l != unlicensed {
			return nil, fmt.Errorf("licence %q: write an SPDX identifier like Apache-2.0, one for each item", l)
		}
	}
	denyUnknown, err := denies(FieldOnUnknown, s.OnUnknown)
	r := license{
		listed: slices.Clone(s.Licenses), allowOnly: s.Type == DenyUnlessLicense, denyUnknown: denyUnknown,
		memo: &atomic.Pointer[map[string]licensed]{},
	}
	r.memo.Store(&map[string]licensed{})
	return r, err
}

func (r license) find(q question) finding {
	switch r.read(q.Version.License) {
	case refused:
		return finding{decision: deny, spoke: true}
	case unreadable:
		if r.denyUnknown {
			return finding{decision: deny, spoke: true}
		}
	case fine:
	}
	return finding{}
}

// read looks a spelling up, or works it out and keeps it. Two that do so at once may lose one of
// the two; it is worked out again.
func (r license) read(text string) licensed {
	kept := r.memo.Load()
	if l, ok := (*kept)[text]; ok {
		return l
	}
	l := r.work(text)
	if len(*kept) < maxLicenseMemo && len(text) <= maxLicenseLength {
		more := make(map[string]licensed, len(*kept)+1)
		maps.Copy(more, *kept)
		more[strings.Clone(text)] = l // text may be a slice of a whole document
		r.memo.CompareAndSwap(kept, &more)
	}
	return l
}

func (r license) work(text string) licensed {
	text = strings.TrimSpace(text)
	if text == unlicensed && slices.Contains(r.listed, unlicensed) {
		if r.allowOnly {
			return fine
		}
		return refused
	}
	if text == "" || len(text) > maxLicenseLength {
		return unreadable
	}
	terms, err := spdxexp.ExtractLicenses(bounded(text))
	if err != nil || len(terms) == 0 {
		return unreadable
	}
	usable := r.spdx()
	if !r.allowOnly {
		usable = slices.DeleteFunc(terms, r.names)
	}
	if len(usable) == 0 {
		return refused
	}
	ok, err := spdxexp.Satisfies(text, usable)
	switch {
	case err != nil:
		return unreadable
	case ok:
		return fine
	}
	return refused
}

// bounded is the expression, or nothing when it has more terms than anybody would read.
func bounded(text string) string {
	terms := 1
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == ')' }) {
		if strings.EqualFold(word, "AND") || strings.EqualFold(word, "OR") {
			terms++
		}
	}
	if terms > maxLicenseTerms || strings.Count(text, "(") > maxLicenseTerms {
		return ""
	}
	return text
}

// spdx are the listed licences without npm's own word.
func (r license) spdx() []string {
	return slices.DeleteFunc(slices.Clone(r.listed), func(l string) bool { return l == unlicensed })
}

// names reports whether a single licence term is one of the listed.
func (r license) names(term string) bool {
	listed := r.spdx()
	if len(listed) == 0 {
		return false
	}
	ok, err := spdxexp.Satisfies(term, listed)
	return ok || err != nil
}

func (r license) explain(q question, _ finding) string {
	text := q.Version.License
	if len(text) > maxLicenseLength {
		text = text[:maxLicenseLength]
	}
	switch {
	case text == "":
		return "the upstream gives no licence for this version"
	case r.read(q.Version.License) == unreadable:
		return fmt.Sprintf("the licence %q cannot be evaluated as an SPDX expression", text)
	case r.allowOnly:
		return fmt.Sprintf("the licence %q is not covered by the allowed ones: %s", text, list(r.listed))
	}
	return fmt.Sprintf("the licence %q requires a denied one: %s", text, list(r.listed))
}
