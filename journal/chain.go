package journal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// link is the place of an entry among all entries that were written, in the order of writing. It
// stands in the wrapper beside the payload.
type link struct {
	// Number counts the entries from 0. The number of a write that failed is used up.
	Number int `json:"number"`
	// Previous is the digest of the link of the last entry before this one that is certainly there.
	// For the first entry it is the digest over all entries that have no link, which are those of a
	// version that wrote none.
	Previous string `json:"previous"`
	// Unsure are the links of the writes between Previous and this entry that failed: each of those
	// entries may be there or not.
	Unsure []string `json:"unsure,omitempty"`
	// Head says whether a head can be kept beside the folder. It stands in the first entry and in
	// those of an import or withdrawal; the last one counts.
	Head *bool `json:"head,omitempty"`
}

// chained is an entry in the chain.
type chained struct {
	link
	name, digest string // digest is of the link
}

// digestOf a link covers the entry's name and payload and everything before it.
func (k link) digest(name, payload string) (string, error) {
	return strictjson.Digest(struct {
		Name    string `json:"name"`
		Payload string `json:"payload"`
		Chain   link   `json:"chain"`
	}{name, payload, k})
}

// enchain puts an entry into the chain of the record.
func (r *Record) enchain(e Entry) error {
	if e.link == nil {
		return nil
	}
	digest, err := e.link.digest(e.Name, e.Digest)
	if err != nil {
		return r.layout.foreign(e.Name, err)
	}
	c := chained{*e.link, e.Name, digest}
	at, _ := slices.BinarySearchFunc(r.chain, c, func(a, b chained) int { return cmp.Compare(a.Number, b.Number) })
	r.chain = slices.Insert(r.chain, at, c)
	return nil
}

// unlinked is the digest over the entries without a link, in the form of [Record.Digest].
func (r *Record) unlinked() string {
	linked := map[string]bool{}
	for _, c := range r.chain {
		linked[c.name] = true
	}
	return r.digestExcept(linked)
}

func (r *Record) digestExcept(left map[string]bool) string {
	var b strings.Builder
	for _, name := range r.names() {
		if !left[name] {
			b.WriteString(name + " " + r.digestOf(name) + "\n")
		}
	}
	return strictjson.DigestBytes([]byte(b.String()))
}

// tip is the number and the link of the last entry in the chain, -1 and the digest of what has no
// link when nothing is.
func (r *Record) tip() (int, string) {
	if len(r.chain) == 0 {
		return -1, r.unlinked()
	}
	last := r.chain[len(r.chain)-1]
	return last.Number, last.digest
}

// nextLink is the link of the entry that is written next. unsure are the writes since the tip that
// failed.
func (r *Record) nextLink(unsure []string) link {
	number, digest := r.tip()
	return link{Number: number + 1 + len(unsure), Previous: digest, Unsure: slices.Clone(unsure)}
}

// headed says whether the journal has a head beside its folder.
func (r *Record) headed() bool {
	for _, c := range slices.Backward(r.chain) {
		if c.Head != nil {
			return *c.Head
		}
	}
	return false
}

// links follows the chain of all entries from the first to the last.
func (r *Record) links() []*Error {
	if len(r.chain) == 0 {
		return nil
	}
	known := map[int]string{-1: r.unlinked()}
	for _, c := range r.chain {
		if known[c.Number] != "" {
			return []*Error{r.invalid(c.name, "chain.number", "is that of another entry too")}
		}
		before := c.Number - 1 - len(c.Unsure)
		switch digest, ok := known[before]; {
		case !ok:
			return []*Error{r.invalid(c.name, "chain", "an entry that was written before it is missing")}
		case digest != c.Previous && before == -1:
			return []*Error{r.invalid(c.name, "chain.previous", "an entry from before it was added, changed or removed")}
		case digest != c.Previous:
			return []*Error{r.invalid(c.name, "chain.previous", "does not continue from the entry before it")}
		}
		for i, digest := range c.Unsure {
			if got, ok := known[before+1+i]; ok && got != digest {
				return []*Error{r.invalid(c.name, "chain.unsure", "does not continue from the entry before it")}
			}
		}
		known[c.Number] = c.digest
	}
	return nil
}
