package app

import (
	"math"
	"testing"
)

// Issue 7, C43: what is kept and the room to collect it in stay within cache.maxBytes and a fifth,
// and a collection is never due after much less than 24 MB.
func TestPace(t *testing.T) {
	last := Pace(0)
	for documents := int64(0); documents < 1<<40; documents += 1 + documents/50 {
		percent := Pace(documents)
		if percent > last || percent < collectLeast {
			t.Fatalf("%d bytes: %d %%, after %d %%", documents, percent, last)
		}
		last = percent
		if grow := (documents + collectBase) * int64(percent) / 100; grow < collectRoom*92/100 || grow > collectRoom && percent > collectLeast {
			t.Errorf("%d bytes may grow by %d", documents, grow)
		}
	}
	for _, budget := range []int64{96 << 20, 256 << 20, 1 << 30, 64 << 30} {
		documents := budget * 7 / 8 // see documents.Memory
		if all := documents + documents*int64(Pace(documents))/100; all > budget*6/5 {
			t.Errorf("with cache.maxBytes %d, documents and their room take %d", budget, all)
		}
	}
	if Pace(math.MaxInt64) != collectLeast {
		t.Error("overflow")
	}
}
