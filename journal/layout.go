package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// MaxRestrictions is how many restrictions, exports, imports and withdrawals a journal may have
// together.
const MaxRestrictions = 200

// The names that this package owns.
const (
	pendingName     = "pending-request.json" // the one file that is ever removed
	typeRestriction = "backoff"              // backoff-0000.json and so on
	version         = "1.0"                  // of the wrapper, of restrictions and of markers
)

// Layout describes the caller's entries. It is read only; one value may serve many journals at
// once.
type Layout struct {
	// Kind is the wrapper's kind in every file of the journal.
	Kind string
	// Prefix goes before the codes of this package in their full form: with "file-upload",
	// CodeInvalid reads "file-upload-evidence-invalid". It may be empty.
	Prefix string
	// Types are the caller's entry types. The first is the founding entry: a single file that
	// [Create] writes and that everything else is bound to.
	Types []Type
	// PlanDigest checks the founding entry and gives the digest that every marker and restriction
	// repeats: "sha256:" and 64 hex digits that say what this journal carries out. Nil means the
	// digest of the founding entry itself.
	PlanDigest func(founding Entry) (string, error)
	// Restriction checks the caller's part of a restriction: its origin and metadata, against its
	// times. It is asked for an operator's statement as well. Nil accepts everything.
	Restriction func(r Restriction) error
	// Check reports what is wrong with the entries taken together, or nil. It runs after every
	// check of this package has passed, when a journal is loaded and before an entry is written.
	Check func(r *Record) error
}

// Type is one type of entries.
type Type struct {
	// Name is the file name without number and extension.
	Name string
	// Max is how many entries there may be: NAME-0000.json to NAME-(Max-1).json, at most 10000.
	// Zero means the single file NAME.json.
	Max int
	// Required makes a journal without this entry CodeMissing.
	Required bool
	// Dense makes a gap in the numbering CodeInvalid.
	Dense bool
	// Facts checks a payload and says what it means to the journal. Nil accepts every object and
	// says nothing.
	Facts func(e Entry) (Facts, error)
}

// Facts is what an entry says, as far as this package needs to know.
type Facts struct {
	// Open says that the entry announces a request, and that the journal is unresolved until
	// another entry closes it, or a restriction names it.
	Open bool
	// URL is, for an open entry, where the request goes; "" leaves it unchecked.
	URL string
	// Closes names the open entry that this one concludes.
	Closes string
	// Nonce is the nonce of the pending request that this entry finishes, or "".
	Nonce string
	// Restriction is the digest of the restriction that was recorded for the answer which this
	// entry records, or "". RestrictionField is the member that holds it, for error texts.
	// RequestID is compared with the restriction's.
	Restriction      string
	RestrictionField string
	RequestID        string
	// Unresolved is a reason for which this entry leaves the journal unresolved for good, or "".
	Unresolved string
}

// Numbered is the name of a numbered entry: Numbered("result", 7) is "result-0007.json".
func Numbered(name string, number int) string { return fmt.Sprintf("%s-%04d.json", name, number) }

// MaxFiles is how many files a journal of this layout may hold: its entries, the restrictions and
// transfers, of which there may be [MaxRestrictions] together, and the marker.
func (l *Layout) MaxFiles() int {
	n := 1 + MaxRestrictions
	for _, t := range l.Types {
		n += max(1, t.Max)
	}
	return n
}

func (l *Layout) validate() error {
	if l == nil || l.Kind == "" || len(l.Types) == 0 || l.Types[0].Max != 0 {
		return errors.New("journal: a layout needs a kind and a single founding type")
	}
	seen := map[string]bool{typeRestriction: true, typeTransfer: true, "pending-request": true}
	for _, t := range l.Types {
		if seen[t.Name] || t.Max < 0 || t.Max > 10000 {
			return fmt.Errorf("journal: the layout's type %q is reserved, repeated or too many", t.Name)
		}
		if err := durable.CheckLeaf(t.Name + ".json"); err != nil {
			return fmt.Errorf("journal: the layout's type %q cannot be a file name: %w", t.Name, err)
		}
		seen[t.Name] = true
	}
	return nil
}

func (l *Layout) founding() string { return l.Types[0].Name + ".json" }

// split finds the type of a file name. The type of a restriction and of a transfer is nil.
func (l *Layout) split(name string) (t *Type, number int, ok bool) {
	stem, ok := strings.CutSuffix(name, ".json")
	if !ok {
		return nil, 0, false
	}
	for i := range l.Types {
		if l.Types[i].Max == 0 && l.Types[i].Name == stem {
			return &l.Types[i], -1, true
		}
	}
	cut := len(stem) - 5
	if cut < 1 || stem[cut] != '-' {
		return nil, 0, false
	}
	for _, c := range []byte(stem[cut+1:]) {
		if c < '0' || c > '9' {
			return nil, 0, false
		}
		number = number*10 + int(c-'0')
	}
	if stem[:cut] == typeRestriction || stem[:cut] == typeTransfer {
		return nil, number, number < MaxRestrictions
	}
	for i := range l.Types {
		if t := &l.Types[i]; t.Name == stem[:cut] && number < t.Max {
			return t, number, true
		}
	}
	return nil, 0, false
}
