package config

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/netguard"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

// refuseUnknown reports every key that no setting has.
func (l *loader) refuseUnknown() {
	known, groups := map[string]bool{}, map[string]bool{"rules": true, "budget": true}
	var names []string
	for _, k := range keys(l.opts.Ecosystems) {
		known[k.path] = true
		names = append(names, k.path)
		for i, c := range k.path {
			if c == '.' {
				groups[k.path[:i]] = true
			}
		}
	}
	for group := range groups {
		names = append(names, group)
	}
	for _, y := range l.layers {
		for _, path := range sortedPaths(y) {
			v := y[path]
			switch {
			case known[path]:
			case groups[path]:
				if !v.null && !v.group {
					l.problems.add(path, v, "is a group of settings, not a value")
				}
			case strings.HasPrefix(path, rulesPrefix):
				l.refuseUnknownRuleKey(path, v)
			case strings.HasPrefix(path, budgetPrefix):
				l.refuseUnknownBudgetKey(path, v)
			default:
				l.problems.add(path, v, "unknown key%s", didYouMean(path, names))
			}
		}
	}
}

func (l *loader) refuseUnknownRuleKey(path string, v value) {
	name, field, below := strings.Cut(strings.TrimPrefix(path, rulesPrefix), ".")
	switch {
	case strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}):
		l.problems.add(path, v, "a rule's name may contain only a-z, 0-9, - and _")
	case !below && v.group:
		if !slices.ContainsFunc(l.rulePaths(), func(p string) bool { return strings.HasPrefix(p, path+".") }) {
			l.problems.add(path, v, "has no type; use %s", strings.Join(policy.Types(), ", "))
		}
	case !below:
		l.problems.add(path, v, "a rule is a group of settings: %s: {type: …}", name)
	case !slices.Contains(ruleFields(), field):
		l.problems.add(path, v, "unknown key%s", didYouMean(field, ruleFields()))
	}
}

func sortedPaths(y layer) []string {
	paths := make([]string, 0, len(y))
	for path := range y {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// askTools fills the public upstreams that no layer names from what the ecosystems' own tools are
// configured with. A mount that is off needs none.
func (l *loader) askTools(ctx context.Context) {
	for _, m := range l.cfg.enabled() {
		if m.Public == nil && !l.failed[m.key(keyPublic)] {
			l.askTool(ctx, m)
		}
	}
}

func (l *loader) askTool(ctx context.Context, m *Mount) {
	path, tool, v := m.key(keyPublic), m.Ecosystem, value{layer: FromTool(m.Ecosystem)}
	advice := fmt.Sprintf("set it, give --%s URL, or switch the mount off with %s: false", tool, m.key(keyEnabled))
	ask := l.opts.Tools[tool]
	if ask == nil {
		l.fail(path, v, "not set; %s", advice)
		return
	}
	text, err := ask(ctx)
	if err != nil {
		l.fail(path, v, "not set, and %s on this machine did not report its registry (%v); %s", tool, err, advice)
		return
	}
	v.scalar = strings.TrimSpace(text)
	u, err := parseURL(v.scalar)
	if err != nil {
		l.fail(path, v, "not set, and the registry that %s on this machine is configured with is unusable: %v; %s", tool, err, advice)
		return
	}
	m.Public = u
	for i := range l.cfg.settings {
		if l.cfg.settings[i].Key == path {
			l.cfg.settings[i] = v.setting(path)
		}
	}
}

// checkWhole looks for what is wrong between settings whose own values are right.
func (l *loader) checkWhole() {
	l.checkPlainHTTP()
	l.checkAdvisories()
	l.checkInternal()
	l.checkAddresses()
	l.checkTargets()
	l.checkLogins()
	l.checkBudgets()
	l.readProxies()
	c := l.cfg
	for i, s := range c.settings {
		if s.Key == "publicURL" && s.Value == "" {
			c.settings[i].Value = "http://" + c.Listen
		}
	}
	l.checkMounts()
	if !slices.ContainsFunc(c.Rules, func(r policy.Spec) bool { return policy.Admitting(r.Type) }) {
		c.warn("rules: no rule admits anything, so every public version will be refused")
	}
}

// checkMounts wants one mount at least, and callers' credentials away from public upstreams.
func (l *loader) checkMounts() {
	mounts := l.cfg.enabled()
	if all := l.cfg.Mounts; len(mounts) == 0 && len(all) > 0 && !l.failed[all[0].key(keyEnabled)] {
		v, _ := l.strongest(all[0].key(keyEnabled))
		l.problems.add(all[0].key(keyEnabled), v, "every mount is switched off, so there is nothing to serve; switch one on")
	}
	for _, m := range mounts {
		if m.Public != nil && m.Private != nil && sameUpstream(m.Public, m.Private) {
			v, _ := l.strongest(m.key(keyPrivate))
			l.problems.add(m.key(keyPrivate), v, "is the same as %s: the callers' credentials would go to the public upstream", m.key(keyPublic))
		}
	}
}

func (c *Config) warn(text string) { c.Warnings = append(c.Warnings, text) }

// checkPlainHTTP allows plain http to loopback addresses and to what egress.allowHTTP names.
func (l *loader) checkPlainHTTP() {
	v, _ := l.strongest("egress.allowHTTP")
	var allowed []string
	for _, text := range l.cfg.Egress.AllowHTTP {
		a, err := cooldown.ParseAuthority(text, 80)
		if err != nil || strings.ContainsAny(text, "/@?#") {
			l.problems.add("egress.allowHTTP", v, "%s: write host or host:port", quote(text))
			continue
		}
		allowed = append(allowed, a.String())
	}
	l.cfg.Egress.AllowHTTP = allowed
	for _, up := range l.cfg.upstreams() {
		a, err := cooldown.AuthorityOf(up.url)
		if err != nil || up.url.Scheme != "http" || loopback(a.Host) || slices.Contains(allowed, a.String()) {
			continue
		}
		v, _ := l.strongest(up.key)
		l.problems.add(up.key, v, "plain http is accepted for loopback addresses only; use https, or add %s to egress.allowHTTP", a)
	}
}

// checkInternal refuses public upstreams whose address lies on an internal network, unless that is
// said to be meant, and addresses in spellings that different readers take for different hosts.
// Loopback is always meant.
func (l *loader) checkInternal() {
	allowed := func(a cooldown.Authority) bool {
		return slices.Contains(l.cfg.Egress.AllowInternal, a) || slices.Contains(l.cfg.Egress.AllowHTTP, a.String())
	}
	for _, up := range l.cfg.upstreams() {
		a, err := cooldown.AuthorityOf(up.url)
		if err != nil || !up.public {
			continue
		}
		v, _ := l.strongest(up.key)
		ip, err := netip.ParseAddr(a.Host)
		switch {
		case err == nil && netguard.Internal(ip) && !ip.IsLoopback() && !allowed(a):
			l.problems.add(up.key, v, "%s is on an internal network; to allow it, add it to egress.allowInternal", a)
		case err != nil && netguard.Numeric(a.Host):
			l.problems.add(up.key, v, "%s looks like an IP address in an unusual notation; write it like 192.0.2.1 or [2001:db8::1]", quote(a.Host))
		}
	}
}

type upstream struct {
	key    string
	url    *url.URL
	public bool // everybody uses it
}

// upstreams are the servers that are spoken to. Mounts that are off speak to none.
func (c *Config) upstreams() []upstream {
	all := c.advisoryUpstreams()
	for _, m := range c.enabled() {
		all = append(all, upstream{m.key(keyPublic), m.Public, true}, upstream{m.key(keyPrivate), m.Private, false})
		for _, u := range m.Files {
			all = append(all, upstream{m.key(keyFiles), u, true})
		}
	}
	return slices.DeleteFunc(append(all, c.targets()...), func(u upstream) bool { return u.url == nil })
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// checkAddresses refuses listeners that collide and upstreams that are the gate itself.
func (l *loader) checkAddresses() {
	c := l.cfg
	if l.failed["listen"] || l.failed["admin"] {
		return
	}
	host, port, _ := net.SplitHostPort(c.Listen)
	adminHost, adminPort, _ := net.SplitHostPort(c.Admin)
	if c.Admin != "" && port != "0" && port == adminPort && (host == adminHost || wildcard(host) || wildcard(adminHost)) {
		v, _ := l.strongest("admin")
		l.problems.add("admin", v, "collides with listen: %s and %s cannot both be served", c.Admin, c.Listen)
	}
	if c.Admin != "" && !loopback(adminHost) && c.AdminTokenFile == "" {
		c.warn("admin: other machines can reach " + c.Admin + ", and no token is asked for: whoever does sees every upstream, the names of " +
			"packages and the rules, and can make the gate send requests; listen on 127.0.0.1, or set admin.tokenFile")
	}
	if wildcard(host) && c.PublicURL == nil && !l.failed["publicURL"] && len(c.Serve.TrustedProxies) == 0 {
		c.warn("publicURL: not set: links in listings begin with http:// and the host that each client's request names; " +
			"behind a proxy that speaks TLS or changes the host set publicURL, or serve.trustedProxies")
	}
	for _, up := range c.upstreams() {
		a, err := cooldown.AuthorityOf(up.url)
		self := err == nil && strconv.Itoa(int(a.Port)) == port && (a.Host == host || loopback(a.Host) && (wildcard(host) || loopback(host)))
		if self || c.PublicURL != nil && sameAuthority(c.PublicURL, up.url) {
			v, _ := l.strongest(up.key)
			l.problems.add(up.key, v, "points at the gate itself (%s)", a)
		}
	}
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func sameAuthority(a, b *url.URL) bool {
	x, errX := cooldown.AuthorityOf(a)
	y, errY := cooldown.AuthorityOf(b)
	return errX == nil && errY == nil && x == y
}

func sameUpstream(a, b *url.URL) bool {
	return sameAuthority(a, b) && strings.TrimRight(a.EscapedPath(), "/") == strings.TrimRight(b.EscapedPath(), "/")
}

// readSecrets reads the files that settings name, as a start would.
func (l *loader) readSecrets() {
	l.readCredentials()
	l.readCredential(adminToken, l.cfg.AdminTokenFile, &l.cfg.AdminToken)
	if data, v := l.readNamed(tokensFile, l.cfg.Auth.TokensFile); data != nil {
		l.checkPrivate(tokensFile, l.cfg.Auth.TokensFile)
		l.cfg.Auth.Tokens = l.parseTokens(data, v)
	}
	l.checkShared()
	if data, v := l.readNamed(caFile, l.cfg.Egress.CAFile); data != nil {
		if err := checkPEM(data); err != nil {
			l.problems.add(caFile, v, "%s: %v", l.cfg.Egress.CAFile, err)
		}
		l.cfg.Egress.CAPem = data
	}
}

func (l *loader) readNamed(path, name string) ([]byte, value) {
	v, _ := l.strongest(path)
	if name == "" || l.failed[path] {
		return nil, v
	}
	data, err := l.opts.ReadFile(name)
	switch {
	case err != nil:
		l.problems.add(path, v, "cannot be read: %v", err)
		return nil, v
	case len(data) > maxFile:
		l.problems.add(path, v, "%s has %d bytes; at most %d are read", name, len(data), maxFile)
		return nil, v
	}
	return data, v
}

// checkPrivate warns of a file with secrets that every user of the machine can read.
func (l *loader) checkPrivate(key, name string) {
	info, err := l.opts.Stat(name)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0 {
		l.cfg.warn(key + ": other users of this machine can read " + name + ", which holds a secret; run chmod o-rwx on it")
	}
}

func checkPEM(data []byte) error {
	count := 0
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return problemf("contains a %q block; only certificates are allowed", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return problemf("certificate %d: %v", count+1, err)
		}
		count++
	}
	if count == 0 || len(bytes.TrimSpace(data)) > 0 {
		return problemf("contains data that is not a PEM certificate")
	}
	return nil
}
