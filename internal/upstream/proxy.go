package upstream

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

// lookupTimeout bounds how long a name is resolved that a proxy will resolve itself.
const lookupTimeout = 3 * time.Second

// through tells the guard of the proxies that there are, before anything is dialled.
func (g *guard) through(proxy func(*url.URL) (*url.URL, error)) {
	for _, scheme := range []string{"http", "https"} {
		via, err := proxy(&url.URL{Scheme: scheme, Host: "public.invalid"})
		if err != nil || via == nil {
			continue
		}
		if a, err := cooldown.ParseAuthority(hostPort(via), 0); err == nil {
			g.proxies[a.String()] = true
		}
	}
}

// proxy picks the proxy of a request to a public host. A proxy connects where it is told, so the
// target is judged here as far as it can be; tunnels are judged when they are made, by judge. Where
// a target is a proxy itself, dial would take it for one, and it is judged here too.
func (g *guard) proxy(r *http.Request, of func(*url.URL) (*url.URL, error)) (*url.URL, error) {
	via, err := of(r.URL)
	if err != nil {
		return nil, err
	}
	target := hostPort(r.URL)
	a, err := cooldown.ParseAuthority(target, 0)
	switch {
	case err != nil:
		return nil, err
	case via == nil && !g.proxies[a.String()]: // dial judges
		return nil, nil
	case via != nil && r.URL.Scheme == "https" && via.Scheme != "socks5" && via.Scheme != "socks5h":
		// a tunnel
		return via, nil
	}
	return via, g.judge(r.Context(), target)
}

// judge refuses a "host:port" behind a proxy that lies on an internal network as far as this
// machine can tell: by its address, or by what its name resolves to here. What does not resolve
// here is the proxy's to judge.
func (g *guard) judge(ctx context.Context, addr string) error {
	a, err := cooldown.ParseAuthority(addr, 0)
	if err != nil {
		return err
	}
	_, trusted := g.trusted.Load(a.String())
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		return g.check(netip.AddrPortFrom(ip, a.Port).String(), trusted)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	resolver := g.dialer.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	ips, err := resolver.LookupNetIP(ctx, "ip", a.Host)
	if err != nil {
		return nil //nolint:nilerr // this machine need not know the name
	}
	for _, ip := range ips {
		if err := g.check(netip.AddrPortFrom(ip, a.Port).String(), trusted); err != nil {
			return err
		}
	}
	return nil
}

// hostPort is where net/http connects for an address, as it spells it.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
