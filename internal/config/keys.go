package config

import (
	"slices"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

// key is one setting: where it stands in the file, its default as the file would write it, and
// where it goes.
type key struct {
	path  string
	def   string
	into  func(*Config) any // a pointer whose type decides the syntax
	oneOf []string          // the allowed words, if they are few
	// notYet names the feature that this version does not have: the key may only say what its
	// default says.
	notYet string
}

// Keys that the checks name; those of mounts are below "mounts.ECOSYSTEM.".
const (
	keyEnabled        = "enabled"
	keyPublic         = "public"
	keyFiles          = "files"
	keyPrivate        = "private"
	keyFirstParty     = "firstParty"
	keyOverlap        = "overlap"
	keyMirror         = "mirror.url"
	keyMirrorIndex    = "mirror.index"
	keyMirrorToken    = "mirror.tokenFile" //nolint:gosec // the name of a key
	keyMirrorUsername = "mirror.usernameFile"
	keyMirrorPassword = "mirror.passwordFile" //nolint:gosec // the name of a key
	keyPublish        = "publish.url"

	keyPrivateToken     = "privateTokenFile" //nolint:gosec // the name of a key
	keyPrivateUsername  = "privateUsernameFile"
	keyPrivatePassword  = "privatePasswordFile" //nolint:gosec // the name of a key
	keyPrivateAnonymous = "privateAnonymous"
	keyPublishToken     = "publish.tokenFile" //nolint:gosec // the name of a key
	keyPublishUsername  = "publish.usernameFile"
	keyPublishPassword  = "publish.passwordFile" //nolint:gosec // the name of a key

	adminAddress = "admin"
	adminToken   = "admin.tokenFile" //nolint:gosec // the name of a key
	tokensFile   = "auth.tokensFile"

	helpMessage = "serve.helpMessage"
	queueURL    = "queue.url"
	caFile      = "egress.caFile"
	egressProxy = "egress.proxy"
)

// mountKeys are the settings of one mount: the same for all, as far as they mean something for its
// ecosystem.
func mountKeys(e registry.Ecosystem, known registry.Ecosystems) []key {
	var all []key
	add := func(k key, into func(*Mount) any) {
		k.path = (&Mount{Ecosystem: e.Name}).key(k.path)
		k.into = func(c *Config) any { return into(c.Mount(e.Name)) }
		all = append(all, k)
	}
	add(key{path: keyEnabled, def: "true"}, func(m *Mount) any { return &m.Enabled })
	add(key{path: keyPublic, def: e.Mount.Public}, func(m *Mount) any {
		if e.Mount.Public == "" {
			return &m.Public
		}
		return (*requiredURL)(&m.Public)
	})
	if e.Mount.Files != "" {
		add(key{path: keyFiles, def: e.Mount.Files}, func(m *Mount) any { return &m.Files })
	}
	addPrivate(add)
	add(key{path: keyFirstParty}, func(m *Mount) any { return packageNames{&m.FirstParty, known} })
	if e.HasScopes {
		words := []string{PathEncoded, PathLiteral}
		add(key{path: "scopedPath.public", def: PathEncoded, oneOf: words}, func(m *Mount) any { return &m.ScopedPath.Public })
		add(key{path: "scopedPath.private", def: PathEncoded, oneOf: words}, func(m *Mount) any { return &m.ScopedPath.Private })
	}
	add(key{path: keyMirror}, func(m *Mount) any { return &m.Mirror.URL })
	if e.Mount.MirrorLogin {
		add(key{path: keyMirrorIndex}, func(m *Mount) any { return &m.Mirror.Index })
		add(key{path: keyMirrorUsername}, func(m *Mount) any { return &m.Mirror.UsernameFile })
		add(key{path: keyMirrorPassword}, func(m *Mount) any { return &m.Mirror.PasswordFile })
	} else {
		add(key{path: keyMirrorToken}, func(m *Mount) any { return &m.Mirror.TokenFile })
	}
	add(key{path: keyPublish}, func(m *Mount) any { return &m.Publish.URL })
	addLogin(add, keyPublishToken, keyPublishUsername, keyPublishPassword, func(m *Mount) *Login { return &m.Publish.Login })
	return all
}

// addPrivate adds the keys of the private registry.
func addPrivate(add func(key, func(*Mount) any)) {
	add(key{path: keyPrivate}, func(m *Mount) any { return &m.Private })
	addLogin(add, keyPrivateToken, keyPrivateUsername, keyPrivatePassword, func(m *Mount) *Login { return &m.PrivateLogin })
	add(key{path: keyPrivateAnonymous, def: "false"}, func(m *Mount) any { return &m.PrivateAnonymous })
	add(key{path: "privateFailure", def: string(Refuse), oneOf: []string{string(Refuse), string(Degrade)}}, func(m *Mount) any {
		return (*string)(&m.PrivateFailure)
	})
	add(key{path: "privateRules", def: string(DenyRules), oneOf: []string{string(DenyRules), string(AllRules)}}, func(m *Mount) any {
		return (*string)(&m.PrivateRules)
	})
	add(key{path: keyOverlap, def: string(Merge), oneOf: []string{string(Merge), string(Shadow)}}, func(m *Mount) any {
		return (*string)(&m.Overlap)
	})
}

// addLogin adds the keys of a credential of the gate's own.
func addLogin(add func(key, func(*Mount) any), token, username, password string, login func(*Mount) *Login) {
	add(key{path: token}, func(m *Mount) any { return &login(m).TokenFile })
	add(key{path: username}, func(m *Mount) any { return &login(m).UsernameFile })
	add(key{path: password}, func(m *Mount) any { return &login(m).PasswordFile })
}

// keys is every setting but the rules, in the order in which the documentation and `ecluse check`
// show them.
func keys(known registry.Ecosystems) []key {
	all := []key{
		{path: "listen", def: "127.0.0.1:4873", into: func(c *Config) any { return (*hostPort)(&c.Listen) }},
		{path: "publicURL", into: func(c *Config) any { return &c.PublicURL }},
		{path: adminAddress, def: "127.0.0.1:4874", into: func(c *Config) any { return (*optionalHostPort)(&c.Admin) }},
		{path: adminToken, into: func(c *Config) any { return &c.AdminTokenFile }},
		{path: "dataDir", def: "./ecluse-data", into: func(c *Config) any { return (*required)(&c.DataDir) }},
		{path: tokensFile, into: func(c *Config) any { return &c.Auth.TokensFile }},
	}
	for _, e := range known {
		all = append(all, mountKeys(e, known)...)
	}
	return append(append(all, cacheKeys()...), []key{
		{path: "artifacts.maxBytes", def: "10GiB", into: func(c *Config) any { return &c.Artifacts.MaxBytes }},
		{path: "integrity.minPublic", def: "sha256", into: func(c *Config) any { return (*publicFloor)(&c.Integrity.MinPublic) }},
		{path: "integrity.minTrusted", def: "sha256", into: func(c *Config) any { return &c.Integrity.MinTrusted }},
		{path: "serve.maxInFlight", def: "0", into: func(c *Config) any { return &c.Serve.MaxInFlight }},
		{path: "serve.wait", def: "1s", into: func(c *Config) any { return &c.Serve.Wait }},
		{path: "serve.hold", def: "0s", into: func(c *Config) any { return &c.Serve.Hold }},
		{path: "serve.drain", def: "30s", into: func(c *Config) any { return &c.Serve.Drain }},
		{path: helpMessage, into: func(c *Config) any { return (*oneLine)(&c.Serve.HelpMessage) }},
		{path: "serve.trustedProxies", into: func(c *Config) any { return &c.Serve.TrustedProxies }},
		{path: queueURL, into: func(c *Config) any { return (*postgresURL)(&c.Queue.URL) }},
		{path: caFile, into: func(c *Config) any { return &c.Egress.CAFile }},
		{path: "egress.allowInternal", into: func(c *Config) any { return &c.Egress.AllowInternal }},
		{path: "egress.blockedRanges", into: func(c *Config) any { return &c.Egress.BlockedRanges }},
		{path: egressProxy, into: func(c *Config) any { return &c.Egress.Proxy }},
		{path: "egress.allowHTTP", into: func(c *Config) any { return &c.Egress.AllowHTTP }},
		{path: "log.format", def: "auto", oneOf: []string{"auto", "json", "text"}, into: func(c *Config) any { return &c.Log.Format }},
		{
			path: "log.level", def: "info", oneOf: []string{"debug", "info", "warn", "error"},
			into: func(c *Config) any { return &c.Log.Level },
		},
		{path: "telemetry.otlp", into: func(c *Config) any { return &c.Telemetry.OTLP }},

		{path: advisoriesSource, into: func(c *Config) any { return (*advisorySource)(&c.Advisories.Source) }},
		{path: advisoriesInterval, def: "1h", into: func(c *Config) any { return &c.Advisories.Interval }},
		{path: "cooldown.shared", notYet: "the shared cooldown"},
	}...)
}

// cacheKeys are those of what is kept and read.
func cacheKeys() []key {
	return []key{
		{path: "cache.ttl", def: "60s", into: func(c *Config) any { return &c.Cache.TTL }},
		{path: "cache.maxBytes", def: "256MiB", into: func(c *Config) any { return &c.Cache.MaxBytes }},
		{path: "cache.diskBytes", def: "1GiB", into: func(c *Config) any { return &c.Cache.DiskBytes }},
		{path: "cache.maxDocument", def: "128MiB", into: func(c *Config) any { return (*documentSize)(&c.Cache.MaxDocument) }},
		{path: "cache.maxFetching", def: "auto", into: func(c *Config) any { return (*autoSize)(&c.Cache.MaxFetching) }},
		{path: "cache.maxStale", def: "1h", into: func(c *Config) any { return &c.Cache.MaxStale }},
	}
}

// readKeys parses what each layer says about each key, the strongest last. A wrong value is
// reported even where a stronger layer hides it: the file would be wrong again as soon as the
// variable is gone.
func (l *loader) readKeys() {
	for _, k := range keys(l.opts.Ecosystems) {
		said := []value{{scalar: k.def, layer: FromDefault}}
		for _, y := range l.layers {
			if v, ok := y[k.path]; ok {
				said = append(said, v)
			}
		}
		for _, v := range said {
			if err := k.read(l.cfg, v); err != nil {
				l.fail(k.path, v, "%v", err)
			}
		}
		if k.notYet == "" {
			l.cfg.settings = append(l.cfg.settings, said[len(said)-1].setting(k.path))
		}
	}
}

func (k key) read(c *Config, v value) error {
	switch {
	case v.null:
		return problemf(`has no value; write "" for an empty one`)
	case v.group:
		return errGroup
	case k.notYet != "" && v.String() != k.def:
		return problemf("%s: not supported by this version; remove the key", k.notYet)
	case k.notYet != "":
		return nil
	case len(k.oneOf) > 0 && !slices.Contains(k.oneOf, v.String()):
		return problemf("%s is not one of %s", quote(v.String()), strings.Join(k.oneOf, ", "))
	}
	return parseInto(k.into(c), v)
}
