package e2e_test

import (
	"strings"
	"testing"
)

// Each client installs a tree of private and public packages through the gate, with its lock file
// and the integrity of each package intact, and again from the lock file without any cache. The
// caller's credential opens the private upstream and is never sent to the public one.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			public := startFront(t, w.public.url)
			g := serveGate(t, w.config(public.url, ""))
			p := newProject(t, c, g.npm, w.private.token, map[string]string{"@acme/core": "^1.0.0", "@pub/scoped": "^2.0.0"})
			first := p.must(t, c.install...)
			t.Logf("%s took %v", c.name, first.took)
			p.installed(t)
			lock := p.read(t, c.lock)
			w.checkLock(t, c, lock, public.url)

			p.forget(t)
			p.must(t, c.frozen...)
			p.installed(t)
			if again := p.read(t, c.lock); again != lock {
				t.Errorf("the second install changed the lock file:\n%s\n---\n%s", lock, again)
			}

			seen, secrets := public.requests()
			if len(secrets) > 0 {
				t.Errorf("the public upstream was sent a credential: %q", secrets)
			}
			for _, request := range seen {
				if strings.Contains(request, "core") && strings.Contains(request, "acme") && strings.HasSuffix(request, ".tgz") {
					t.Errorf("a private artifact was asked of the public upstream: %s", request)
				}
			}
		})
	}
}

// checkLock wants the integrity of each package in the lock file, and no address but the gate's.
func (w *world) checkLock(t *testing.T, c client, lock, public string) {
	t.Helper()
	if c.integrity {
		for of, integrity := range map[string]string{
			"@acme/core": w.private.integrity["@acme/core@1.2.0"], "@pub/scoped": w.public.integrity["@pub/scoped@2.1.0"],
			"left-dep": w.public.integrity["left-dep@1.1.0"],
		} {
			if !strings.Contains(lock, integrity) {
				t.Errorf("the lock file lacks the integrity of %s (%s):\n%s", of, integrity, lock)
			}
		}
	}
	for _, upstream := range []string{public, w.public.url, w.private.url} {
		if strings.Contains(lock, hostOf(upstream)) {
			t.Errorf("the lock file names an upstream, %s:\n%s", upstream, lock)
		}
	}
}

// A package that no rule admits is refused with the reason on the user's screen, and is no reason
// to look elsewhere.
func TestRefusalReachesTheUser(t *testing.T) {
	w := newWorld(t)
	g := serveGate(t, w.config(w.public.url, "serve: {helpMessage: ask the gate keepers}\n"))
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c, g.npm, w.private.token, map[string]string{"too-young": "^1.0.0"})
			r := p.run(t, c.install...)
			if r.code == 0 {
				t.Fatalf("too-young was installed:\n%s", r.output)
			}
			for _, text := range []string{"min-age", "versions are admitted 7 days after", "ask the gate keepers"} {
				if c.reason && !strings.Contains(r.output, text) {
					t.Errorf("%s does not show %q to its user:\n%s", c.name, text, r.output)
				}
			}
			if !strings.Contains(r.output, "403") && !c.reason {
				t.Errorf("%s does not show the status to its user:\n%s", c.name, r.output)
			}
		})
	}
}

// A version that the rules deny now is not installed from a lock file that was written when they
// admitted it (C11), and npm shows why.
func TestDeniedVersionIsNotInstalledFromALockFile(t *testing.T) {
	w := newWorld(t)
	before := serveGate(t, w.config(w.public.url, ""))
	after := serveGate(t, w.config(w.public.url, "  ban: {type: DenyByIdentity, packages: [left-dep@1.1.0]}\nserve: {helpMessage: ask the gate keepers}\n"))
	c := clients(t)[0]
	p := newProject(t, c, before.npm, w.private.token, map[string]string{"left-dep": "^1.0.0"})
	p.must(t, c.install...)
	p.installedVersion(t, "left-dep", "1.1.0")
	write(t, p.dir, c.lock, strings.ReplaceAll(p.read(t, c.lock), hostOf(before.npm), hostOf(after.npm)))
	configureNPM(t, p.dir, after.npm, w.private.token)
	p.forget(t)
	r := p.run(t, c.frozen...)
	if r.code == 0 {
		t.Fatalf("a denied version was installed from a lock file:\n%s", r.output)
	}
	for _, text := range []string{"403", "ban", "ask the gate keepers"} {
		if !strings.Contains(r.output, text) {
			t.Errorf("npm does not show %q to its user:\n%s", text, r.output)
		}
	}
	// a range falls to what is admitted
	p.must(t, "install", "left-dep@^1.0.0", "--no-save", "--package-lock=false")
	p.installedVersion(t, "left-dep", "1.0.0")
}

// What npm has beside installing: view works, audit fails clearly, and neither breaks an install.
func TestOtherNPMCommands(t *testing.T) {
	w := newWorld(t)
	g := serveGate(t, w.config(w.public.url, ""))
	for _, c := range clients(t)[:2] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c, g.npm, w.private.token, map[string]string{"@acme/core": "^1.0.0"})
			p.must(t, "install")
			if out := p.must(t, "view", "@pub/scoped", "versions", "--json").output; !strings.Contains(out, "2.0.0") || !strings.Contains(out, "2.1.0") {
				t.Errorf("npm view: %s", out)
			}
			if out := p.must(t, "view", "@acme/core", "version").output; !strings.Contains(out, "1.2.0") {
				t.Errorf("npm view of a private package: %s", out)
			}
			p.must(t, "ping")
			// a registry without an audit service is no registry without findings
			audit := p.run(t, "audit")
			if audit.code == 0 || strings.Contains(audit.output, "found 0 vulnerabilities") {
				t.Errorf("npm audit says that all is well, which nobody looked at:\n%s", audit.output)
			}
			if out := p.run(t, "view", "no-such-package", "version"); out.code == 0 || !strings.Contains(out.output, "404") {
				t.Errorf("a package that does not exist: exit code %d\n%s", out.code, out.output)
			}
			if out := p.must(t, "search", "left").output; !strings.Contains(out, "left-dep") {
				t.Errorf("npm search: %s", out)
			}
			p.must(t, "install", "left-dep@1.0.0")
			p.installedVersion(t, "left-dep", "1.0.0")
		})
	}
}

func (p *project) installedVersion(t *testing.T, name, version string) {
	t.Helper()
	if text := p.read(t, "node_modules/"+name+"/package.json"); !strings.Contains(text, `"version":"`+version+`"`) {
		t.Errorf("%s: %s", name, text)
	}
}
