package config

import (
	"bytes"
	"slices"
	"strings"
)

// reloadable reports whether a running gate takes over a changed key by itself.
func reloadable(key string) bool {
	switch key {
	case tokensFile, adminToken, helpMessage, advisoriesSource, advisoriesInterval:
		return true
	}
	return strings.HasPrefix(key, rulesPrefix)
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

// sameFile reports whether the content of the file that a key names is the same, for the files that
// are read at a start alone.
func sameFile(a, b *Config, key string) bool {
	if key == caFile {
		return bytes.Equal(a.Egress.CAPem, b.Egress.CAPem)
	}
	for _, m := range a.Mounts {
		mine, theirs := m.Mirror, b.Mount(m.Ecosystem).Mirror
		switch key {
		case m.key(keyMirrorToken):
			return mine.Token == theirs.Token
		case m.key(keyMirrorUsername):
			return mine.Username == theirs.Username
		case m.key(keyMirrorPassword):
			return mine.Password == theirs.Password
		}
	}
	return true
}
