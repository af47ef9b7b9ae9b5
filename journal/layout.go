package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// The names and limits that this package owns.
const (
	// PendingName is the one file that is ever removed.
	PendingName = "pending-request.json"
	// EventType is the type name of restrictions: backoff-0000.json and so on.
	EventType = "backoff"
	// MaxEvents is how many restrictions a journal may hold.
	MaxEvents = 200
	// SchemaVersion is the wrapper's version, EventVersion that of restrictions and markers.
	SchemaVersion = "1.0"
	EventVersion  = "1.0"
)

// Layout describes the caller's entries. It is read only; one value may serve many journals at once.
type Layout struct {
	// Kind is the wrapper's kind in every file of the journal.
	Kind string
	// Prefix goes before the codes of this package: with "file-upload", CodeInvalid becomes "file-upload-evidence-invalid".
	Prefix string
	// Types are the caller's entry types. The first is the founding entry: a single file that [Create] writes and that everything else
	// is bound to.
	Types []Type
	// Found reads the founding entry's payload.
	Found func(payload json.RawMessage) (Founding, error)
	// Check tells what is wrong with the entries taken together, or nil. It runs after every check of this package has passed, when a
	// journal is loaded and before an entry is written.
	Check func(r *Record) error
}

// Founding is what the founding entry says about the journal as a whole.
type Founding struct {
	// PlanDigest is the digest that every marker and restriction repeats: what this journal carries out.
	PlanDigest string
	// BackoffVersion is "1.0", or "" for a journal from before restrictions were recorded (S100, S113).
	BackoffVersion string
}

// Type is one type of entries.
type Type struct {
	// Name is the file name without number and extension.
	Name string
	// Max is how many entries there may be: NAME-0000.json to NAME-(Max-1).json, at most 10000. Zero means the single file NAME.json.
	Max int
	// Required makes a journal without this entry CodeMissing.
	Required bool
	// Dense makes a gap in the numbering CodeInvalid.
	Dense bool
	// Facts checks a payload and says what it means to the journal. Nil accepts every object and says nothing.
	Facts func(e Entry) (Facts, error)
}

// Facts is what an entry says, as far as this package needs to know.
type Facts struct {
	// Open says that the entry announces a request, and that the journal is unresolved until another entry closes it, or a restriction
	// names it.
	Open bool
	// URLDigest is, for an open entry, the digest of the URL that the request goes to; "" leaves it unchecked.
	URLDigest string
	// Closes names the open entry that this one concludes.
	Closes string
	// Nonce is the nonce of the pending request that this entry finishes, or "".
	Nonce string
	// Throttled says that the entry records a 429. Event is then the digest of the restriction that was recorded for it; without one the
	// entry is invalid, or in a journal without BackoffVersion unresolved. RequestID is compared with the restriction's.
	Throttled bool
	Event     string
	RequestID string
}

// Numbered is the name of a numbered entry: Numbered("result", 7) is "result-0007.json".
func Numbered(name string, number int) string { return fmt.Sprintf("%s-%04d.json", name, number) }

// MaxFiles is how many files a journal of this layout may hold: its entries, the restrictions and the marker. For the File layout that is
// 1003 (S114).
func (l *Layout) MaxFiles() int {
	n := 1 + MaxEvents
	for _, t := range l.Types {
		n += max(1, t.Max)
	}
	return n
}

func (l *Layout) validate() error {
	if l == nil || l.Kind == "" || len(l.Types) == 0 || l.Types[0].Max != 0 || l.Found == nil {
		return errors.New("journal: a layout needs a kind, a single founding type and a Found function")
	}
	seen := map[string]bool{EventType: true, "pending-request": true}
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

// split finds the type of a file name. The type of a restriction is nil.
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
	if stem[:cut] == EventType {
		return nil, number, number < MaxEvents
	}
	for i := range l.Types {
		if t := &l.Types[i]; t.Name == stem[:cut] && number < t.Max {
			return t, number, true
		}
	}
	return nil, 0, false
}
