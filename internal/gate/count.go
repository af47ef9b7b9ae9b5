package gate

import "errors"

// countDecision moves the decision and refusal counters, once for each client request (R80, R82).
func (g *Gate) countDecision(kind, read string, err error) {
	decision := "unavailable"
	if err == nil {
		decision = "admit"
	} else if wait, ok := errors.AsType[*Unavailable](err); ok {
		g.countCooldown(read, wait)
	} else if isDenial(err) {
		decision = "deny"
	}
	g.opts.Metrics.Decision(g.opts.Ecosystem.Name, kind, decision)
}

// countListing is countDecision for a listing that is served, although something may be missing
// from it.
func (g *Gate) countListing(degraded Degradation, cooldown *Unavailable) {
	g.opts.Metrics.Decision(g.opts.Ecosystem.Name, "listing", "admit")
	if degraded != Complete {
		g.opts.Metrics.Degraded(g.opts.Ecosystem.Name, string(degraded))
	}
	if cooldown != nil {
		g.countCooldown("metadata", cooldown)
	}
}

// countCooldown counts one client request whose answer is what it is because of a cooldown:
// refused, degraded or retained. The one whose read met the throttled answer is an attempt and no
// refusal (R80).
func (g *Gate) countCooldown(read string, e *Unavailable) {
	if e.Cooldown && !e.Forwarded {
		g.opts.Metrics.Refusal(e.Authority, read)
	}
}
