package advisory

import (
	"cmp"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
)

// placed is an event at its place among the bounds.
type placed struct {
	kind  string
	place int32
}

// addRange evaluates the events of one range as the OSV schema's algorithm does. A bound that is no
// version is dropped, so that it ends nothing; as a beginning it means the very first version.
func (c *compiled) addRange(finding int32, events []osv.Event) {
	order, end := c.arrange(events)
	open := int32(-1)
	emit := func(hi, fixedBy int32) {
		if hi = min(hi, end); open >= 0 && open <= hi {
			c.spans = append(c.spans, span{finding, open, hi, fixedBy})
		}
		open = -1
	}
	for _, p := range order {
		switch {
		case p.kind == osv.Introduced && open < 0:
			open = p.place
		case p.kind == osv.LastAffected:
			emit(p.place, -1)
		case p.kind == osv.Fixed:
			emit(p.place-1, (p.place-1)/2)
			c.fixes = append(c.fixes, span{finding, p.place, p.place, -1})
		}
	}
	emit(last, -1)
}

// arrange sorts events by place, those of one place by kind, and returns the last place below the
// highest limit.
func (c *compiled) arrange(events []osv.Event) (order []placed, end int32) {
	end = last
	limited := false
	for _, ev := range events {
		place, ok := c.known[ev[1]]
		switch {
		case ev[0] == osv.Introduced && (!ok || ev[1] == "0"):
			order = append(order, placed{osv.Introduced, first})
		case ev[0] == osv.Limit && !ok: // "*" as well
			limited, end = true, last
		case ev[0] == osv.Limit && !limited:
			limited, end = true, place-1
		case ev[0] == osv.Limit:
			end = max(end, place-1)
		case ok:
			order = append(order, placed{ev[0], place})
		}
	}
	kinds := []string{osv.Introduced, osv.LastAffected, osv.Fixed}
	slices.SortStableFunc(order, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(slices.Index(kinds, a.kind), slices.Index(kinds, b.kind)))
	})
	return order, end
}
