package listing

// RunBytes is about how many bytes of a document one run of its items spans: some 32 small versions
// or files. An item that comes of age changes one run, or two; shorter runs take longer to pack for
// the first time.
const RunBytes = 32 << 10

// Runs says where the runs of a rendering begin that are likely to stay as they are in another
// rendering: where an item begins the next stretch of its document. Which items are served decides
// nothing. The zero value is ready for one list of items.
type Runs struct {
	part    int32
	stretch uint32
	later   bool
}

// Begins reports whether a run begins before the item of a part that lies at an offset of the
// part's document. Offsets are counted from the first item, so that what grows before them moves no
// run. Items must come in the rendering's order.
func (r *Runs) Begins(part int32, offset uint32) bool {
	stretch := offset / RunBytes
	if r.later && part == r.part && stretch == r.stretch {
		return false
	}
	r.part, r.stretch, r.later = part, stretch, true
	return true
}
