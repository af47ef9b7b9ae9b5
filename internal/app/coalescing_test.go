package app

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// R46, C59: a caller that looks while a read is about to end, and comes when it has ended, begins
// no second one.
func TestCoalescingOfLateCallers(t *testing.T) {
	inWorld(t, "", func(w *world) {
		const names, crowd = 150, 24
		for i := range names {
			w.public.Publish(fmt.Sprint("p", i), "1.0.0", longAgo, nil)
		}
		for i := range names {
			var wg sync.WaitGroup
			for range crowd {
				wg.Go(func() { w.want(w.get(fmt.Sprint("/npm/p", i)), 200, -1) })
			}
			wg.Wait()
			w.sent(i + 1)
		}
	})
}

// R46, C47, C59: one read for many callers; one caller's abort hurts nobody.
func TestCoalescing(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool { time.Sleep(time.Second); return false })
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { w.want(w.get("/npm/a"), 200, -1) })
		}
		wg.Wait()
		w.sent(1)
		w.public.Always(429, "Retry-After", "9")
		for range 20 {
			wg.Go(func() { w.want(w.get("/npm/b"), 503, 9) })
		}
		wg.Wait()
		w.sent(2)
	})
}
