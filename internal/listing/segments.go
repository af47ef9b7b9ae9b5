package listing

// SegmentBytes is about how many bytes of a document one segment of its items spans: some 32 small
// versions or files. An item that comes of age changes one segment, or two; shorter segments take
// longer to pack for the first time.
const SegmentBytes = 32 << 10

// Segments says where the segments of a rendering begin that are likely to stay as they are in
// another rendering: where an item begins the next stretch of its document. Which items are served
// decides nothing. The zero value is ready for one list of items.
type Segments struct {
	part    int32
	stretch uint32
	later   bool
}

// Begins reports whether a segment begins before the item of a part that lies at an offset of the
// part's document. Offsets are counted from the first item, so that what grows before them moves no
// segment. Items must come in the rendering's order.
func (r *Segments) Begins(part int32, offset uint32) bool {
	stretch := offset / SegmentBytes
	if r.later && part == r.part && stretch == r.stretch {
		return false
	}
	r.part, r.stretch, r.later = part, stretch, true
	return true
}
