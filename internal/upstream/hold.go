package upstream

import (
	"context"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// holding is how long one request has waited for cooldowns to end (R89, R98). All its waits
// together keep within Options.Hold.
type holding struct {
	public   *Public
	deadline time.Time       // zero until it waits for the first time
	news     <-chan struct{} // closed when the authority's state changes after listen
}

// listen is called before a request asks, so that no change between the refusal and the wait is
// missed.
func (h *holding) listen() {
	if h.public.client.opts.Hold > 0 {
		h.news = h.public.line.news()
	}
}

// allows reports whether the request may wait so long.
func (h *holding) allows(wait time.Duration) bool {
	hold, now := h.public.client.opts.Hold, time.Now()
	if h.deadline.IsZero() && hold > 0 {
		h.deadline = now.Add(hold)
	}
	return hold > 0 && wait > 0 && !now.Add(wait).After(h.deadline)
}

// refused waits after a refusal, and reports whether to ask again. What a probe finds out concerns
// all who wait, so it ends their wait at once.
func (h *holding) refused(ctx context.Context, r *cooldown.Refusal) bool {
	if !r.Probing {
		return h.allows(r.Wait) && h.sit() && h.wait(ctx, r.Wait, nil)
	}
	return h.allows(time.Millisecond) && h.sit() && h.wait(ctx, min(r.Wait, time.Until(h.deadline)), h.news)
}

// sit takes one of the places of those who wait, if there is one. Whoever has it waits.
func (h *holding) sit() bool {
	select {
	case h.public.client.holders <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait gives the place back when it is over, and reports whether it was not for the context's end.
func (h *holding) wait(ctx context.Context, wait time.Duration, news <-chan struct{}) bool {
	defer func() { <-h.public.client.holders }()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-news:
	case <-ctx.Done():
		return false
	}
	return true
}
