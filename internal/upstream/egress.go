package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/netguard"
)

// Egress says where connections to public hosts may end. Names are judged by the addresses that
// they resolve to, at the moment of dialling, so that a name that changes its answer gains nothing.
type Egress struct {
	// Internal are authorities that an operator put on an internal network on purpose. IP literals
	// among the upstreams and localhost need not be named: who writes an address means it.
	Internal []cooldown.Authority
	// Blocked are ranges that are never dialled for a public upstream, whoever names them.
	Blocked []netip.Prefix
}

// ErrForbiddenAddress is the end of a dial to an address that a public host must not have.
var ErrForbiddenAddress = errors.New("the address is on an internal network")

// guard is a dialer for public hosts.
type guard struct {
	egress  Egress
	trusted sync.Map        // "host:port" of authorities that may be internal
	proxies map[string]bool // "host:port" of the proxies, which the operator named
	dialer  net.Dialer
}

func newGuard(e Egress) *guard {
	g := &guard{egress: e, proxies: map[string]bool{}, dialer: net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}}
	for _, a := range e.Internal {
		g.trusted.Store(a.String(), true)
	}
	return g
}

// trust lets an authority be internal when the operator wrote its address or localhost.
func (g *guard) trust(a cooldown.Authority) {
	if _, err := netip.ParseAddr(a.Host); err == nil || a.Host == "localhost" {
		g.trusted.Store(a.String(), true)
	}
}

// dial has the form of net.Dialer.DialContext.
func (g *guard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	authority, err := cooldown.ParseAuthority(addr, 0)
	if err != nil {
		return nil, err
	}
	d := g.dialer
	if g.proxies[authority.String()] { // what lies behind it is judged by proxy and judge
		return d.DialContext(ctx, network, addr)
	}
	_, trusted := g.trusted.Load(authority.String())
	d.Control = func(_, resolved string, _ syscall.RawConn) error { return g.check(resolved, trusted) }
	return d.DialContext(ctx, network, addr)
}

// check judges one resolved "ip:port".
func (g *guard) check(resolved string, trusted bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrForbiddenAddress, err)
	}
	ip := ap.Addr().Unmap().WithZone("")
	for _, p := range g.egress.Blocked {
		if p.Contains(ip) {
			return fmt.Errorf("%w: %s is in a blocked range", ErrForbiddenAddress, ip)
		}
	}
	if !trusted && netguard.Internal(ip) {
		return fmt.Errorf("%w: %s", ErrForbiddenAddress, ip)
	}
	return nil
}
