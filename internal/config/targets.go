package config

import (
	"net/url"
	"slices"
	"strings"
)

// NPMMirror is the npm registry that approved packages are copied to.
type NPMMirror struct {
	URL       *url.URL // nil: nothing is mirrored
	TokenFile string
	Token     Secret // read from TokenFile
}

// PyPIMirror is the Python index that approved files are copied to.
type PyPIMirror struct {
	URL *url.URL // the upload endpoint; nil: nothing is mirrored
	// its pages; nil: where an index lies beside such an endpoint
	Index                      *url.URL
	UsernameFile, PasswordFile string
	Username, Password         Secret // read from the files
}

// Publish is where first-party packages are published.
type Publish struct {
	URL *url.URL // nil: publishing is off
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
func (c *Config) targets() []upstream {
	return []upstream{
		{npmMirror, c.Mounts.NPM.Mirror.URL},
		{npmPublish, c.Mounts.NPM.Publish.URL},
		{pypiMirror, c.Mounts.PyPI.Mirror.URL},
		{pypiMirrorIndex, c.Mounts.PyPI.Mirror.Index},
		{pypiPublish, c.Mounts.PyPI.Publish.URL},
	}
}

// checkTargets refuses mirrors and places of publication that contradict the rest.
func (l *loader) checkTargets() {
	n, p := &l.cfg.Mounts.NPM, &l.cfg.Mounts.PyPI
	for _, t := range []struct {
		key, publicKey string
		target, public *url.URL
	}{
		{npmMirror, npmPublic, n.Mirror.URL, n.Public},
		{npmPublish, npmPublic, n.Publish.URL, n.Public},
		{pypiMirror, pypiPublic, p.Mirror.URL, p.Public},
		{pypiPublish, pypiPublic, p.Publish.URL, p.Public},
	} {
		if t.target != nil && t.public != nil && sameUpstream(t.target, t.public) {
			v, _ := l.strongest(t.key)
			l.problems.add(t.key, v, "is the same as %s: nothing is written to a public upstream", t.publicKey)
		}
	}
	for _, k := range []struct {
		key, needs string
		set, there bool
	}{
		{npmMirrorToken, npmMirror, n.Mirror.TokenFile != "", n.Mirror.URL != nil},
		{pypiMirrorIndex, pypiMirror, p.Mirror.Index != nil, p.Mirror.URL != nil},
		{pypiMirrorUsername, pypiMirror, p.Mirror.UsernameFile != "", p.Mirror.URL != nil},
		{pypiMirrorPassword, pypiMirrorUsername, p.Mirror.PasswordFile != "", p.Mirror.UsernameFile != ""},
		{pypiMirrorUsername, pypiMirrorPassword, p.Mirror.UsernameFile != "", p.Mirror.PasswordFile != ""},
		{npmPublish, "mounts.npm.firstParty", n.Publish.URL != nil, len(n.FirstParty) > 0},
		{pypiPublish, "mounts.pypi.firstParty", p.Publish.URL != nil, len(p.FirstParty) > 0},
	} {
		if v, _ := l.strongest(k.key); k.set && !k.there && !l.failed[k.needs] {
			l.problems.add(k.key, v, "has no effect without %s", k.needs)
		}
	}
}

// readCredentials reads the files with the credentials of mirrors.
func (l *loader) readCredentials() {
	n, p := &l.cfg.Mounts.NPM.Mirror, &l.cfg.Mounts.PyPI.Mirror
	for _, f := range []struct {
		key, file string
		into      *Secret
	}{
		{npmMirrorToken, n.TokenFile, &n.Token},
		{pypiMirrorUsername, p.UsernameFile, &p.Username},
		{pypiMirrorPassword, p.PasswordFile, &p.Password},
	} {
		data, v := l.readNamed(f.key, f.file)
		if data == nil {
			continue
		}
		text := strings.TrimSpace(string(data))
		if text == "" || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			l.problems.add(f.key, v, "%s must contain one line of 1 to 4096 characters", f.file)
		}
		*f.into = NewSecret(text)
	}
}

// public reports whether an upstream is a public one.
func (u upstream) public() bool {
	return slices.Contains([]string{npmPublic, pypiPublic, pypiFiles}, u.key)
}
