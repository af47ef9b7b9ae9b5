package mirror

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"github.com/ecluse-gate/ecluse/internal/obs"
)

// Nothing grows with traffic: what was offered lately is remembered up to a bound, however many
// files there are, and without the documents and requests that their names were cut out of. What is
// beyond the memory for offers is lost, and counted.
func TestOffersAreBounded(t *testing.T) {
	o := NewOffers(nil, obs.NewMetrics(), slog.New(slog.DiscardHandler)) // nobody saves
	request := strings.Repeat("file", 1000)
	o.Offer(Job{Ecosystem: "npm", Package: "first", Version: "1.0.0", File: request[:4]})
	for j := range o.recent {
		if unsafe.StringData(j.File) == unsafe.StringData(request) {
			t.Error("a request is kept for its file's sake")
		}
	}
	for i := range 50_000 {
		o.Offer(Job{Ecosystem: "npm", Package: fmt.Sprint("p", i), Version: "1.0.0", File: "p.tgz"})
		select {
		case <-o.jobs: // as if it had been saved
		default:
		}
		if n := len(o.recent) + len(o.old); n > maxRecent {
			t.Fatalf("%d are remembered", n)
		}
	}
	for i := range 2 * maxUnsaved {
		o.Offer(Job{Ecosystem: "npm", Package: fmt.Sprint("q", i), Version: "1.0.0", File: "q.tgz"})
	}
	if waiting, lost := o.Unsaved(); waiting > maxUnsaved || int(lost)+waiting < 2*maxUnsaved {
		t.Errorf("%d wait, %d are lost", waiting, lost)
	}
}

// Turns are forgotten with their last holder.
func TestTurnsAreForgotten(t *testing.T) {
	k := keyed{held: map[string]*turn{}}
	for i := range 10_000 {
		release, err := k.enter(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if len(k.held) != 0 {
		t.Errorf("%d are held", len(k.held))
	}
}
