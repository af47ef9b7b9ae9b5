package config

import (
	"net/url"
	"strings"
)

// Mirror is the registry that approved packages are copied to.
type Mirror struct {
	URL *url.URL // where files are sent; nil: nothing is mirrored
	// where a mirror with a login shows what it holds; nil: where that lies beside such an endpoint
	Index     *url.URL
	TokenFile string
	Token     Secret // read from TokenFile
	// UsernameFile and PasswordFile hold the login of mirrors that have one.
	UsernameFile, PasswordFile string
	Username, Password         Secret // read from the files
}

// Publish is where first-party packages are published.
type Publish struct {
	URL *url.URL // nil: publishing is off
	// the gate's own, for URL; without one that of Private counts if it is the same server
	Login Login
}

// Queue is where mirror jobs are kept.
type Queue struct {
	URL string // of a PostgreSQL database, without a password; "" = SQLite in DataDir
}

// postgresURL is the address of a PostgreSQL database. It holds no password, since settings are
// shown.
type postgresURL string

func checkPostgresURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return problemf("not a URL: it must look like postgres://user@host/database")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return problemf("must begin with postgres://")
	case u.Host == "" || strings.Trim(u.Path, "/") == "":
		return problemf("needs a host and a database: postgres://user@host/database")
	}
	if _, password := u.User.Password(); password || u.Query().Has("password") {
		return problemf("must not contain a password; set PGPASSWORD or PGPASSFILE instead")
	}
	return nil
}

// targets are the registries that are written to.
func (c *Config) targets() (all []upstream) {
	for _, m := range c.enabled() {
		all = append(all, upstream{m.key(keyMirror), m.Mirror.URL, false}, upstream{m.key(keyPublish), m.Publish.URL, false},
			upstream{m.key(keyMirrorIndex), m.Mirror.Index, false})
	}
	return all
}

// checkTargets refuses mirrors and places of publication that contradict the rest.
func (l *loader) checkTargets() {
	for _, m := range l.cfg.enabled() {
		for _, t := range []upstream{{m.key(keyMirror), m.Mirror.URL, false}, {m.key(keyPublish), m.Publish.URL, false}} {
			if t.url != nil && m.Public != nil && sameUpstream(t.url, m.Public) {
				v, _ := l.strongest(t.key)
				l.problems.add(t.key, v, "is the same as %s: nothing is written to a public upstream", m.key(keyPublic))
			}
		}
		for _, k := range []struct {
			key, needs string
			set, there bool
		}{
			{keyMirrorToken, keyMirror, m.Mirror.TokenFile != "", m.Mirror.URL != nil},
			{keyMirrorIndex, keyMirror, m.Mirror.Index != nil, m.Mirror.URL != nil},
			{keyMirrorUsername, keyMirror, m.Mirror.UsernameFile != "", m.Mirror.URL != nil},
			{keyMirrorPassword, keyMirrorUsername, m.Mirror.PasswordFile != "", m.Mirror.UsernameFile != ""},
			{keyMirrorUsername, keyMirrorPassword, m.Mirror.UsernameFile != "", m.Mirror.PasswordFile != ""},
			{keyPublish, keyFirstParty, m.Publish.URL != nil, len(m.FirstParty) > 0},
			{keyOverlap, keyPrivate, m.Overlap == Shadow, m.Private != nil},
		} {
			if v, _ := l.strongest(m.key(k.key)); k.set && !k.there && !l.failed[m.key(k.needs)] {
				l.problems.add(m.key(k.key), v, "has no effect without %s", m.key(k.needs))
			}
		}
	}
}

// credential is a file that holds one, and where its content goes.
type credential struct {
	key, file string
	into      *Secret
}

// credentials are the gate's own for the registries behind a mount.
func (m *Mount) credentials() []credential {
	return []credential{
		{m.key(keyPrivateToken), m.PrivateLogin.TokenFile, &m.PrivateLogin.Token},
		{m.key(keyPrivateUsername), m.PrivateLogin.UsernameFile, &m.PrivateLogin.Username},
		{m.key(keyPrivatePassword), m.PrivateLogin.PasswordFile, &m.PrivateLogin.Password},
		{m.key(keyMirrorToken), m.Mirror.TokenFile, &m.Mirror.Token},
		{m.key(keyMirrorUsername), m.Mirror.UsernameFile, &m.Mirror.Username},
		{m.key(keyMirrorPassword), m.Mirror.PasswordFile, &m.Mirror.Password},
		{m.key(keyPublishToken), m.Publish.Login.TokenFile, &m.Publish.Login.Token},
		{m.key(keyPublishUsername), m.Publish.Login.UsernameFile, &m.Publish.Login.Username},
		{m.key(keyPublishPassword), m.Publish.Login.PasswordFile, &m.Publish.Login.Password},
	}
}

// readCredentials reads the files with the gate's own credentials.
func (l *loader) readCredentials() {
	for _, m := range l.cfg.enabled() {
		for _, f := range m.credentials() {
			l.readCredential(f.key, f.file, f.into)
		}
	}
}

func (l *loader) readCredential(key, file string, into *Secret) {
	data, v := l.readNamed(key, file)
	if data == nil {
		return
	}
	l.checkPrivate(key, file)
	text := strings.TrimSpace(string(data))
	if text == "" || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		l.problems.add(key, v, "%s must contain one line of 1 to 4096 characters", file)
	}
	*into = NewSecret(text)
}
