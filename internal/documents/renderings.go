package documents

import (
	"sync"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// maxForms bounds the renderings that are kept of one document: a mount has few forms and few names
// for itself.
const maxForms = 8

// renderings are what was rendered from one public document alone. Each serves until the rules
// change or the first denied version comes of age; then the next one takes over from it what did
// not change.
type renderings struct {
	mu     sync.Mutex // guards all below; held while rendering, so that a crowd renders once
	forms  map[Form]kept
	memory int64 // the sum of the costs
}

// Form names one rendering of a document: a representation with links below a base.
type Form struct{ Name, Base string }

type kept struct {
	rendered *Rendered
	// under which it was rendered; nil: of the document before this one, to take over from
	rules any
	until time.Time
	cost  int64 // as it is charged
}

func (r *renderings) cost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory
}

// successor begins the renderings of the next document of the same package: those of this one that
// serve are there to take over from.
func (r *renderings) successor() *renderings {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &renderings{forms: map[Form]kept{}}
	for key, k := range r.forms {
		if k.rules != nil {
			k.rules = nil
			next.set(key, k)
		}
	}
	return next
}

// set keeps a rendering in place of the one before, and tells by how much the cost changed.
func (r *renderings) set(key Form, k kept) int64 {
	before := r.memory
	old, again := r.forms[key]
	if r.forms == nil || !again && len(r.forms) >= maxForms {
		r.forms, r.memory = map[Form]kept{}, 0
	}
	r.forms[key] = k
	r.memory += k.cost - old.cost
	return r.memory - before
}

// recount brings the charged cost of a rendering up to date, if it is still the one that is kept.
func (r *renderings) recount(key Form, rendered *Rendered) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.forms[key]
	if k.rendered != rendered {
		return 0
	}
	k.cost = rendered.body.Cost()
	return r.set(key, k)
}

// Rendering gives the rendering that is kept of the document in a form, which is the same for every
// caller, or keeps the one that render makes. It serves until the rules are no longer those, or
// until the time that render gives is past; the zero time is never past.
func (e *Document) Rendering(now time.Time, f Form, rules any, render func() (registry.Rendering, time.Time, error)) (*Rendered, error) {
	rs := e.renderings
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := rs.forms[f]
	if last.rules == rules && (last.until.IsZero() || now.Before(last.until)) {
		return last.rendered, nil
	}
	out, until, err := render()
	if err != nil {
		return nil, err
	}
	rendered := NewRendered(out, last.rendered)
	grow := func(n int64) {
		e.of.opts.Memory.store.Grow(e.of.key(e.name), n, func(other *Document) bool { return other.renderings == rs })
	}
	rendered.packed.tell = func() { grow(rs.recount(f, rendered)) }
	grow(rs.set(f, kept{rendered, rules, until, rendered.body.Cost()}))
	return rendered, nil
}
