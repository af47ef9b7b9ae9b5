package cooldown

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

// Permit allows one request. Settle it exactly once: Finish when status and header fields have
// arrived, Release when they never did. Both are safe at any time and from any goroutine: settling
// a probe permit again, or after its lease has gone to another, does nothing, and an ordinary
// permit has nothing to release. A permit that is lost costs no more than its lease.
//
// The zero Permit belongs to no table; settling it does nothing.
type Permit struct {
	table     *Table
	ctx       context.Context // of the request, for the Store
	authority Authority
	lease     uint64   // 0 for ordinary traffic
	receipt   *receipt // with Options.Strict
}

// Authority is where the request may go.
func (p Permit) Authority() Authority { return p.authority }

// Probe reports that this request is the probe after a cooldown: no other request is sent to the
// authority.
func (p Permit) Probe() bool { return p.lease != 0 }

// Finish reports the response's status and Retry-After when they have arrived, without waiting for
// the body, and returns what that changed. A throttling answer starts the next cooldown. Any other
// answer to the probe opens the authority; to an ordinary request it changes nothing, so that a
// late success cannot end a cooldown that began after it was sent.
func (p Permit) Finish(now time.Time, status int, header retryafter.Report) Transition {
	if p.table == nil || !p.receipt.settle(p) {
		return Transition{}
	}
	if !Throttles(status, header) {
		if p.lease == 0 {
			return Transition{}
		}
		return p.table.recover(now, p, status)
	}
	a := answer{status: status, hint: HintFallback, lease: p.lease}
	if delay, usable := hint(header); usable {
		a.delay, a.hint = delay, HintSeconds
		if header.Kind == retryafter.KindDate {
			a.hint = HintDate
		}
	}
	return p.table.throttle(now, p, a)
}

// Release returns the permit without an answer: cancelled, no connection, panic. The cooldown stays
// as it is, and the next request becomes the probe.
func (p Permit) Release(now time.Time) {
	if p.table == nil || !p.receipt.settle(p) || p.lease == 0 {
		return
	}
	p.table.release(now, p)
}

// Recheck judges the permit again at the moment of the act: just before the request is written,
// which may be long after Ask (a connection had to be made, or waited for). While the permit still
// holds it is returned as it is, at the cost of one atomic load and, with a Memory, a call of that.
// Otherwise it is released, and the answer is what Ask returns now: a refusal, or another permit,
// which may be the probe's. A probe permit no longer holds when its lease has gone to another, or
// when an answer to an older request, or news of the Memory, has moved the deadline.
func (p Permit) Recheck(now time.Time) (Permit, *Refusal) {
	if p.table == nil {
		return p, nil
	}
	if p.table.memory != nil {
		p.table.memory.Recall(now, p.table, true)
	}
	if p.holds() {
		return p, nil
	}
	p.Release(now)
	return p.table.Ask(p.ctx, now, p.authority)
}

// holds reports whether nothing has happened since the permit was given that withdraws it.
func (p Permit) holds() bool {
	s := p.table.view.Load().get(p.authority)
	switch {
	case s == nil:
		return p.lease == 0
	case p.lease == 0:
		return !s.cooling
	}
	return s.lease == p.lease && s.valid != nil
}

// Withdrawn is closed when the permit no longer holds, so that a request that waits to be written
// can stop waiting. It is a signal, not a decision: the receiver calls Recheck. The zero Permit is
// never withdrawn.
func (p Permit) Withdrawn() <-chan struct{} {
	if p.table == nil {
		return nil
	}
	s := p.table.view.Load().get(p.authority)
	switch {
	case s == nil && p.lease == 0: // it gave way in a full table
		return nil
	case s == nil, s.valid == nil, s.lease != p.lease:
		return closed
	}
	return s.valid
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// MisuseKind says which rule about permits was broken.
type MisuseKind uint8

// The kinds of misuse.
const (
	// MisuseLost: a permit was garbage collected without having been settled.
	MisuseLost MisuseKind = iota
	// MisuseTwice: a permit was settled for the second time.
	MisuseTwice
)

// String is "lost" or "settled twice".
func (k MisuseKind) String() string {
	if k == MisuseTwice {
		return "settled twice"
	}
	return "lost"
}

// Misuse is a permit that was not settled exactly once.
type Misuse struct {
	Kind      MisuseKind
	Authority Authority
	Probe     bool
}

// receipt follows one permit and all its copies when Options.Strict is set. A nil receipt allows
// everything.
type receipt struct {
	table   *Table
	done    atomic.Bool
	cleanup runtime.Cleanup
}

func (t *Table) newReceipt(m Misuse) *receipt {
	r := &receipt{table: t}
	t.unsettled.Add(1)
	r.cleanup = runtime.AddCleanup(r, t.lost, m)
	return r
}

// lost is called by the garbage collector, in a goroutine of its own.
func (t *Table) lost(m Misuse) {
	t.unsettled.Add(-1)
	t.strict(m)
}

// settle reports whether this is the first time.
func (r *receipt) settle(p Permit) bool {
	if r == nil {
		return true
	}
	if r.done.Swap(true) {
		r.table.strict(Misuse{Kind: MisuseTwice, Authority: p.authority, Probe: p.Probe()})
		return false
	}
	r.cleanup.Stop()
	r.table.unsettled.Add(-1)
	return true
}
