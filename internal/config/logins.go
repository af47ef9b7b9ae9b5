package config

import (
	"encoding/base64"
	"fmt"
)

// Login is a credential of the gate's own for a registry of yours: a token, or a user name and a
// password.
type Login struct {
	TokenFile, UsernameFile, PasswordFile string
	Token, Username, Password             Secret // read from the files
}

// set reports whether there is one.
func (l Login) set() bool { return l.TokenFile != "" || l.UsernameFile != "" || l.PasswordFile != "" }

// authorization is the value of an Authorization field. TokenUser is as in registry.Mount.
func (l Login) authorization(tokenUser string) string {
	switch {
	case l.UsernameFile != "":
		return basic(l.Username.Reveal(), l.Password.Reveal())
	case l.TokenFile == "":
		return ""
	case tokenUser != "":
		return basic(tokenUser, l.Token.Reveal())
	}
	return "Bearer " + l.Token.Reveal()
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// Own are the gate's own credentials for the registries behind one mount, each as the value of an
// Authorization field; empty: none.
type Own struct {
	// Private is for reads of the private registry, Publish for publications, Mirror for the
	// mirror.
	Private, Publish, Mirror string
}

// Own are the credentials of a mount. Publishers use their own while everybody may use the gate;
// while it has tokens, what they send is one of those, and goes nowhere (R106).
func (c *Config) Own(m *Mount) Own {
	known, _ := c.known.Named(m.Ecosystem)
	user := known.Mount.TokenUser
	own := Own{Private: m.PrivateLogin.authorization(user), Mirror: m.Mirror.login().authorization("")}
	if c.Auth.TokensFile == "" {
		return own
	}
	own.Publish = m.Publish.Login.authorization(user)
	if !m.Publish.Login.set() && m.publishesHome() {
		own.Publish = own.Private
	}
	return own
}

func (m Mirror) login() Login {
	return Login{
		TokenFile: m.TokenFile, UsernameFile: m.UsernameFile, PasswordFile: m.PasswordFile,
		Token: m.Token, Username: m.Username, Password: m.Password,
	}
}

// publishesHome reports whether publications go to the server that private packages come from, so
// that the credential for it may go there.
func (m *Mount) publishesHome() bool {
	return m.Private != nil && m.Publish.URL != nil && m.Private.Scheme == m.Publish.URL.Scheme && sameAuthority(m.Private, m.Publish.URL)
}

// checkLogins refuses credentials that contradict each other or that nothing would use, and
// registries that no credential could reach.
func (l *loader) checkLogins() {
	for _, m := range l.cfg.enabled() {
		l.checkLogin(m, m.PrivateLogin, [3]string{keyPrivateToken, keyPrivateUsername, keyPrivatePassword}, keyPrivate, m.Private != nil)
		l.checkLogin(m, m.Publish.Login, [3]string{keyPublishToken, keyPublishUsername, keyPublishPassword}, keyPublish, m.Publish.URL != nil)
		l.checkReach(m)
		l.warnOverlap(m)
	}
}

func (l *loader) checkLogin(m *Mount, login Login, keys [3]string, target string, there bool) {
	files := [3]string{login.TokenFile, login.UsernameFile, login.PasswordFile}
	for i, key := range keys {
		if v, _ := l.strongest(m.key(key)); files[i] != "" && !there && !l.failed[m.key(target)] {
			l.problems.add(m.key(key), v, "has no effect without %s", m.key(target))
		}
	}
	v, _ := l.strongest(m.key(keys[1]))
	switch {
	case login.TokenFile != "" && (login.UsernameFile != "" || login.PasswordFile != ""):
		v, _ = l.strongest(m.key(keys[0]))
		l.problems.add(m.key(keys[0]), v, "give a token, or a user name and a password, not both")
	case login.UsernameFile != "" && login.PasswordFile == "":
		l.problems.add(m.key(keys[1]), v, "has no effect without %s", m.key(keys[2]))
	case login.PasswordFile != "" && login.UsernameFile == "":
		v, _ = l.strongest(m.key(keys[2]))
		l.problems.add(m.key(keys[2]), v, "has no effect without %s", m.key(keys[1]))
	}
}

// checkReach looks at what goes to the private registry and the place of publication. A caller has
// one credential: while the gate has tokens of its own it is one of them, and never goes on (R106).
func (l *loader) checkReach(m *Mount) {
	closed := l.cfg.Auth.TokensFile != ""
	own := m.key(keyPrivateToken) + " (or " + m.key(keyPrivateUsername) + " and " + m.key(keyPrivatePassword) + ")"
	anonymous, _ := l.strongest(m.key(keyPrivateAnonymous))
	switch {
	case m.PrivateAnonymous && m.PrivateLogin.set():
		l.problems.add(m.key(keyPrivateAnonymous), anonymous, "contradicts %s", own)
	case m.PrivateAnonymous && !closed && !l.failed[tokensFile]:
		l.problems.add(m.key(keyPrivateAnonymous), anonymous, "has no effect without %s: callers' own credentials are passed on", tokensFile)
	case closed && m.Private != nil && !m.PrivateLogin.set() && !m.PrivateAnonymous:
		v, _ := l.strongest(m.key(keyPrivate))
		l.problems.add(m.key(keyPrivate), v, "needs a credential of the gate's own: callers send tokens of %s, which are never passed on; "+
			"set %s, or %s: true if this registry asks for none", tokensFile, own, m.key(keyPrivateAnonymous))
	case !closed && m.PrivateLogin.set():
		l.cfg.warn(m.key(keyPrivate) + ": whoever reaches the gate reads this registry with the gate's credential; set " + tokensFile)
	}
	publish := m.key(keyPublishToken) + " (or " + m.key(keyPublishUsername) + " and " + m.key(keyPublishPassword) + ")"
	v, _ := l.strongest(m.key(keyPublish))
	switch {
	case !closed && m.Publish.Login.set() && !l.failed[tokensFile]:
		l.problems.add(m.key(keyPublish), v, "%s has no effect without %s: publishers' own credentials are passed on", publish, tokensFile)
	case closed && m.Publish.URL != nil && !m.Publish.Login.set() && !m.publishesHome():
		l.problems.add(m.key(keyPublish), v, "needs a credential of the gate's own: publishers send tokens of %s, which are never passed on; "+
			"set %s", tokensFile, publish)
	}
}

// warnOverlap says what can happen to private names that only the private registry knows of.
func (l *loader) warnOverlap(m *Mount) {
	if m.Private == nil || len(m.FirstParty) > 0 || m.Overlap == Shadow || l.failed[m.key(keyFirstParty)] || l.failed[m.key(keyOverlap)] {
		return
	}
	l.cfg.warn(fmt.Sprintf("%s: merge, and %s names nothing: a stranger who publishes one of your private names on the public registry, with a "+
		"higher version, is offered to your clients (dependency confusion), and a caller whom the private registry tells 404 gets the public "+
		"package; list your names in %s, or set %s: shadow",
		m.key(keyOverlap), m.key(keyFirstParty), m.key(keyFirstParty), m.key(keyOverlap)))
}

// checkShared refuses a credential of the gate's own that is a token of its callers as well: a
// token would go on under another name, and its holders would have what is the gate's.
func (l *loader) checkShared() {
	tokens := map[Secret]bool{}
	for _, t := range l.cfg.Auth.Tokens {
		tokens[t.Secret] = true
	}
	for _, m := range l.cfg.enabled() {
		for _, f := range m.credentials() {
			if v, _ := l.strongest(f.key); tokens[*f.into] {
				l.problems.add(f.key, v, "is also a token of %s, and those never go to an upstream; give the gate a credential of its own", tokensFile)
			}
		}
	}
}
