package config

import (
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxies are the proxies that lead to upstreams. Loopback addresses are always reached directly.
type Proxies struct {
	http, https, none string
}

// Func picks the proxy that leads to an address, nil for none; it is nil when there are no proxies.
func (p Proxies) Func() func(*url.URL) (*url.URL, error) {
	if p.http == "" && p.https == "" {
		return nil
	}
	return (&httpproxy.Config{HTTPProxy: p.http, HTTPSProxy: p.https, NoProxy: p.none}).ProxyFunc()
}

// readProxies reads the variables that programs of every kind obey, HTTPS_PROXY, HTTP_PROXY and
// NO_PROXY, also in small letters. egress.proxy takes the place of the first two. What they say of
// a proxy may hold a password, which is not shown.
func (l *loader) readProxies() {
	p := &l.cfg.Egress.Proxies
	none, _ := l.variable("NO_PROXY")
	p.none = none.scalar
	if u := l.cfg.Egress.Proxy; u != nil {
		p.http, p.https = u.String(), u.String()
		return
	}
	for _, v := range []struct {
		name string
		into *string
	}{{"HTTP_PROXY", &p.http}, {"HTTPS_PROXY", &p.https}} {
		said, ok := l.variable(v.name)
		if !ok {
			continue
		}
		u, err := parseProxy(said.scalar)
		if err != nil {
			l.problems.add("", said, "%v", err)
			continue
		}
		*v.into = said.scalar
		for i, s := range l.cfg.settings {
			if s.Key == egressProxy {
				said.scalar = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
				l.cfg.settings[i] = said.setting(egressProxy)
			}
		}
	}
}

// variable is what the environment says under a name in capitals, or in small letters.
func (l *loader) variable(name string) (value, bool) {
	for _, spelling := range []string{name, strings.ToLower(name)} {
		for _, kv := range l.opts.Environ {
			if text, ok := strings.CutPrefix(kv, spelling+"="); ok && text != "" {
				return value{scalar: text, layer: FromEnv, source: spelling}, true
			}
		}
	}
	return value{}, false
}

// parseProxy reads the address of a proxy as the variables spell it: with a scheme or without.
func parseProxy(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, problemf("not the address of a proxy: it must look like http://host:port")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, problemf("not the address of a proxy: it must begin with http://, https:// or socks5://")
}
