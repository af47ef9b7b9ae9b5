package server

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

// A client that takes a file slowly gets all of it, and one that takes nothing more for a minute is
// given up.
func TestClientThatStopsReading(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		whole bool
	}{"slow": {2 * time.Second, true}, "stopped": {time.Minute, false}} {
		inWorld(t, Options{}, func(w *world) {
			w.Public.Publish("a", "1.0.0", longAgo, nil)
			resp := w.Send(http.MethodGet, fileA, "")
			defer resp.Body.Close()
			var err error
			got, piece := 0, make([]byte, 16<<10)
			for err == nil {
				time.Sleep(c.pause)
				var n int
				n, err = resp.Body.Read(piece)
				got += n
			}
			if whole := errors.Is(err, io.EOF) && got == len(fakenpm.File("a", "1.0.0")); whole != c.whole {
				t.Errorf("%s: %d bytes, %v", name, got, err)
			}
		})
	}
}
