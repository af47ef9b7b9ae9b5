package config

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
)

// reloadable reports whether a running gate takes over a changed key by itself.
func reloadable(key string) bool {
	switch key {
	case tokensFile, adminToken, helpMessage, advisoriesSource, advisoriesInterval:
		return true
	}
	return strings.HasPrefix(key, rulesPrefix) || isCredential(key)
}

// isCredential reports whether a key of a mount says what the gate shows to a registry of yours.
func isCredential(key string) bool {
	_, rest, _ := strings.Cut(strings.TrimPrefix(key, "mounts."), ".")
	switch rest {
	case keyPrivateToken, keyPrivateUsername, keyPrivatePassword, keyPrivateAnonymous, keyMirrorToken, keyMirrorUsername,
		keyMirrorPassword, keyPublishToken, keyPublishUsername, keyPublishPassword:
		return true
	}
	return false
}

// NeedRestart are the keys whose values differ in next, or the content of the files they name, and
// that a running gate does not take over, in the order of the documentation.
func (c *Config) NeedRestart(next *Config) []string {
	values := map[string]string{}
	for _, s := range next.settings {
		values[s.Key] = s.Value
	}
	var keys []string
	for _, s := range c.settings {
		if value, ok := values[s.Key]; (!ok || value != s.Value || !sameFile(c, next, s.Key)) && !reloadable(s.Key) {
			keys = append(keys, s.Key)
		}
		delete(values, s.Key)
	}
	for _, s := range next.settings {
		if _, added := values[s.Key]; added && !reloadable(s.Key) {
			keys = append(keys, s.Key)
		}
	}
	return slices.Compact(keys)
}

// sameFile reports whether the content of the file that a key names is the same, for the file that
// is read at a start alone.
func sameFile(a, b *Config, key string) bool {
	return key != caFile || bytes.Equal(a.Egress.CAPem, b.Egress.CAPem)
}

// OwnAfter are the gate's own credentials that a running gate takes over from c for the registries
// behind a mount that it was started with. A credential whose registry is another one in c stays
// what it is now: the new one is not for the address that the gate goes on to use.
func (c *Config) OwnAfter(m *Mount, now Own) Own {
	with := c.Mount(m.Ecosystem)
	if !with.Enabled {
		return now
	}
	own := c.Own(with)
	for _, k := range []struct {
		before, after *url.URL
		into          *string
		old           string
	}{
		{m.Private, with.Private, &own.Private, now.Private},
		{m.Publish.URL, with.Publish.URL, &own.Publish, now.Publish},
		{m.Mirror.URL, with.Mirror.URL, &own.Mirror, now.Mirror},
		{m.Mirror.Index, with.Mirror.Index, &own.Mirror, now.Mirror},
	} {
		if address(k.before) != address(k.after) {
			*k.into = k.old
		}
	}
	return own
}

func address(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.String()
}
