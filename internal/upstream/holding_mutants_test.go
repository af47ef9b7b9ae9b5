package upstream

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// R89: who may not wait takes no place of those who do, and a pause of nothing is none to wait for.
func TestRefusedWithoutAWaitTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Hold: time.Second, Table: cooldown.New(cooldown.Options{})})
		defer c.Close()
		p, err := c.Public(&url.URL{Scheme: "http", Host: "registry.example"}, Encoded)
		if err != nil {
			t.Fatal(err)
		}
		h := holding{public: p}
		for _, wait := range []time.Duration{0, -time.Second, time.Second + 1} {
			if h.allows(wait) || h.refused(t.Context(), &cooldown.Refusal{Wait: wait}) {
				t.Errorf("may wait for %v", wait)
			}
		}
		if n := len(c.holders); n != 0 {
			t.Errorf("%d places are taken", n)
		}
		if !h.refused(t.Context(), &cooldown.Refusal{Wait: time.Second}) || len(c.holders) != 0 {
			t.Errorf("did not wait, or kept his place; %d are taken", len(c.holders))
		}
	})
}
