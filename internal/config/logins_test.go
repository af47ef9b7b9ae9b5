package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// withFiles is with, and files with secrets beside it.
func withFiles(yaml string, texts map[string]string) config.Options {
	o := with(yaml)
	files := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if text, ok := texts[name]; ok {
			return []byte(text), nil
		}
		return files(name)
	}
	return o
}

func secrets() map[string]string {
	return map[string]string{"tokens": "ci tok-a\nreader tok-b read\n", "t": "secret-t", "u": "ann", "p": "secret-p", "tw": "secret-tw"}
}

func basicOf(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

const (
	privateNPM  = "private: 'https://r.example/npm/', firstParty: ['@acme/*']"
	privatePyPI = "private: 'https://r.example/simple/', firstParty: [acme]"
	closed      = "auth: {tokensFile: tokens}\n"
)

// R106: what the gate sends of its own, and that publishers' own credentials are used while
// everybody may use the gate.
func TestOwnCredentials(t *testing.T) {
	for _, c := range []struct {
		yaml      string
		npm, pypi config.Own
	}{
		{"", config.Own{}, config.Own{}},
		{"mounts: {npm: {" + privateNPM + "}, pypi: {" + privatePyPI + "}}", config.Own{}, config.Own{}},
		{
			"mounts: {npm: {" + privateNPM + ", privateTokenFile: t}, pypi: {" + privatePyPI + ", privateTokenFile: t}}",
			config.Own{Private: "Bearer secret-t"},
			config.Own{Private: basicOf("__token__", "secret-t")},
		},
		{
			"mounts: {npm: {" + privateNPM + ", privateUsernameFile: u, privatePasswordFile: p}, pypi: {" + privatePyPI + ", privateUsernameFile: u, privatePasswordFile: p}}",
			config.Own{Private: basicOf("ann", "secret-p")},
			config.Own{Private: basicOf("ann", "secret-p")},
		},
		{ // the same server: its credential counts for both
			closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'https://r.example/other/'}}, pypi: {" + privatePyPI +
				", privateUsernameFile: u, privatePasswordFile: p, publish: {url: 'https://r.example:443/legacy/'}}}",
			config.Own{Private: "Bearer secret-t", Publish: "Bearer secret-t"},
			config.Own{Private: basicOf("ann", "secret-p"), Publish: basicOf("ann", "secret-p")},
		},
		{
			"mounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'https://r.example/other/'}}}",
			config.Own{Private: "Bearer secret-t"},
			config.Own{},
		},
		{
			closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'https://w.example/', tokenFile: tw}, mirror: {url: 'https://m.example/', tokenFile: t}}," +
				" pypi: {" + privatePyPI + ", privateAnonymous: true, publish: {url: 'https://w.example/', usernameFile: u, passwordFile: p}," +
				" mirror: {url: 'https://m.example/legacy/', usernameFile: u, passwordFile: p}}}",
			config.Own{Private: "Bearer secret-t", Publish: "Bearer secret-tw", Mirror: "Bearer secret-t"},
			config.Own{Publish: basicOf("ann", "secret-p"), Mirror: basicOf("ann", "secret-p")},
		},
		{ // one that asks for nothing takes publications without
			closed + "mounts: {npm: {" + privateNPM + ", privateAnonymous: true, publish: {url: 'https://r.example/npm/'}}}",
			config.Own{},
			config.Own{},
		},
	} {
		got := load(t, withFiles(c.yaml, secrets()))
		if npm, pypi := got.Own(got.Mount("npm")), got.Own(got.Mount("pypi")); npm != c.npm || pypi != c.pypi {
			t.Errorf("%s:\n%+v\n%+v", c.yaml, npm, pypi)
		}
	}
}

// R106: what cannot work refuses the start and names the key.
func TestLoginsThatContradict(t *testing.T) {
	for _, c := range []struct{ yaml, key, want string }{
		{closed + "mounts: {npm: {" + privateNPM + "}}", "mounts.npm.private", "never passed on; set mounts.npm.privateTokenFile (or mounts.npm.privateUsernameFile and mounts.npm.privatePasswordFile), or mounts.npm.privateAnonymous: true"},
		{closed + "mounts: {pypi: {" + privatePyPI + "}}", "mounts.pypi.private", "never passed on"},
		{closed + "mounts: {npm: {firstParty: [a], publish: {url: 'https://r.example/'}}}", "mounts.npm.publish.url", "set mounts.npm.publish.tokenFile"},
		{closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'https://w.example/'}}}", "mounts.npm.publish.url", "never passed on"},
		{closed + "egress: {allowHTTP: ['r.example:443']}\nmounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'http://r.example:443/'}}}", "mounts.npm.publish.url", "never passed on"},
		{"mounts: {npm: {" + privateNPM + ", publish: {url: 'https://r.example/', tokenFile: t}}}", "mounts.npm.publish.url", "has no effect without auth.tokensFile"},
		{"mounts: {npm: {" + privateNPM + ", privateAnonymous: true}}", "mounts.npm.privateAnonymous", "has no effect without auth.tokensFile"},
		{closed + "mounts: {npm: {" + privateNPM + ", privateAnonymous: true, privateTokenFile: t}}", "mounts.npm.privateAnonymous", "contradicts mounts.npm.privateTokenFile"},
		{"mounts: {npm: {privateTokenFile: t}}", "mounts.npm.privateTokenFile", "has no effect without mounts.npm.private"},
		{closed + "mounts: {npm: {publish: {passwordFile: p, usernameFile: u}}}", "mounts.npm.publish", "has no effect without mounts.npm.publish.url"},
		{"mounts: {npm: {" + privateNPM + ", privateUsernameFile: u}}", "mounts.npm.privateUsernameFile", "has no effect without mounts.npm.privatePasswordFile"},
		{"mounts: {pypi: {" + privatePyPI + ", privatePasswordFile: p}}", "mounts.pypi.privatePasswordFile", "has no effect without mounts.pypi.privateUsernameFile"},
		{"mounts: {npm: {" + privateNPM + ", privateTokenFile: t, privateUsernameFile: u, privatePasswordFile: p}}", "mounts.npm.privateTokenFile", "not both"},
		{"mounts: {npm: {" + privateNPM + ", privateTokenFile: t, privatePasswordFile: p}}", "mounts.npm.privateTokenFile", "not both"},
		{"mounts: {npm: {" + privateNPM + ", privateTokenFile: missing}}", "mounts.npm.privateTokenFile", "cannot be read"},
		{"mounts: {npm: {overlap: shadow}}", "mounts.npm.overlap", "has no effect without mounts.npm.private"},
		{"mounts: {npm: {" + privateNPM + ", overlap: hide}}", "mounts.npm.overlap", "is not one of merge, shadow"},
		// a token of the gate's under another name
		{closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: same}}", "mounts.npm.privateTokenFile", "is also a token of auth.tokensFile"},
		{closed + "mounts: {pypi: {mirror: {url: 'https://m.example/legacy/', usernameFile: u, passwordFile: same}}}", "mounts.pypi.mirror.passwordFile", "is also a token of auth.tokensFile"},
		{closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: t, publish: {url: 'https://w.example/', tokenFile: same}}}", "mounts.npm.publish.tokenFile", "is also a token of auth.tokensFile"},
		{"mounts: {npm: {" + privateNPM + ", privateTokenFile: t}}\nauth: {tokensFile: odd}", "auth.tokensFile", "line 1"},
	} {
		t.Run(c.yaml, func(t *testing.T) {
			files := secrets()
			files["same"], files["odd"] = "tok-b\n", "ci tok write\nci2 tok2\n"
			p := problems(t, withFiles(c.yaml, files))
			if !slices.ContainsFunc(p, func(p config.Problem) bool {
				return strings.HasPrefix(p.Key, c.key) && strings.Contains(p.Text, c.want)
			}) {
				t.Errorf("problems %+v; want one at %s with %q", p, c.key, c.want)
			}
			for _, p := range p {
				if strings.Contains(p.Text, "tok-b") || strings.Contains(p.Text, "secret-") {
					t.Errorf("shows a secret: %s", p.Text)
				}
			}
		})
	}
}

// Credentials of a mount that is off are neither read nor missed.
func TestLoginsOfAMountThatIsOff(t *testing.T) {
	c := load(t, withFiles(closed+"mounts: {npm: {enabled: false, "+privateNPM+", privateTokenFile: missing, publish: {url: 'https://w.example/'}}}", secrets()))
	if len(c.Warnings) != 0 {
		t.Errorf("%q", c.Warnings)
	}
}

// R106: the third word of a line takes the right to publish away.
func TestReadOnlyTokens(t *testing.T) {
	c := load(t, withFiles(closed, secrets()))
	if got := c.Auth.Tokens; len(got) != 2 || got[0].ReadOnly || !got[1].ReadOnly || got[1].Secret.Reveal() != "tok-b" {
		t.Errorf("%+v", got)
	}
}

// R106: check and the start say what can happen to private names, and that an open gate with a
// credential of its own opens the private registry; nothing is said where it cannot happen.
func TestWarningsOfPrivateRegistries(t *testing.T) {
	for _, c := range []struct {
		yaml string
		want []string // each in one warning
	}{
		{"mounts: {npm: {private: 'https://r.example/'}}", []string{"mounts.npm.overlap: merge, and mounts.npm.firstParty names nothing"}},
		{"mounts: {pypi: {private: 'https://r.example/', overlap: merge}}", []string{"dependency confusion"}},
		{"mounts: {npm: {private: 'https://r.example/', overlap: shadow}}", nil},
		{"mounts: {npm: {private: 'https://r.example/', enabled: false}}", nil},
		{"mounts: {npm: {" + privateNPM + "}}", nil},
		{"", nil},
		{"mounts: {npm: {" + privateNPM + ", privateTokenFile: t}}", []string{"mounts.npm.private: whoever reaches the gate reads this registry with the gate's credential; set auth.tokensFile"}},
		{closed + "mounts: {npm: {" + privateNPM + ", privateTokenFile: t}}", nil},
	} {
		got := load(t, withFiles(c.yaml, secrets())).Warnings
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.yaml, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.yaml, got[i], c.want[i])
			}
		}
	}
}

// A credential's file that every user of the machine can read is warned of, as the tokens' is.
func TestLoginFilesThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if os.WriteFile(path, []byte(text), 0o600) != nil || os.Chmod(path, mode) != nil {
			t.Fatal(path)
		}
		return "'" + path + "'"
	}
	open, shut := write("open", "secret-t", 0o644), write("shut", "secret-t", 0o640)
	o := with("mounts: {npm: {" + privateNPM + ", privateTokenFile: " + open + "}, pypi: {" + privatePyPI + ", privateUsernameFile: " + shut + ", privatePasswordFile: " + open + "}}")
	yaml := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if strings.HasPrefix(name, dir) {
			return os.ReadFile(name)
		}
		return yaml(name)
	}
	c := load(t, o)
	for key, want := range map[string]int{"mounts.npm.privateTokenFile": 1, "mounts.pypi.privateUsernameFile": 0, "mounts.pypi.privatePasswordFile": 1} {
		if found := warned(c, key); len(found) != want || want == 1 && (!strings.Contains(found[0], "chmod o-rwx") || strings.Contains(found[0], "secret-t")) {
			t.Errorf("%s: %q", key, found)
		}
	}
}

// R106: a running gate takes over credentials for the registries that it has, and no others; what
// it does not take over keeps what is in use.
func TestOwnAfter(t *testing.T) {
	read := func(mounts string) *config.Config {
		return load(t, withFiles(closed+"mounts: {npm: {"+mounts+"}}", secrets()))
	}
	const start = privateNPM + ", privateTokenFile: t, publish: {url: 'https://w.example/', tokenFile: tw}, mirror: {url: 'https://m.example/', tokenFile: t}"
	before := read(start)
	now := config.Own{Private: "1", Publish: "2", Mirror: "3"}
	fresh := config.Own{Private: "Bearer secret-t", Publish: "Bearer secret-tw", Mirror: "Bearer secret-t"}
	for _, c := range []struct {
		change [2]string
		want   config.Own
	}{
		{[2]string{"", ""}, fresh},
		{[2]string{"r.example/npm/", "r.example/other/"}, config.Own{Private: "1", Publish: fresh.Publish, Mirror: fresh.Mirror}},
		{[2]string{"w.example", "w2.example"}, config.Own{Private: fresh.Private, Publish: "2", Mirror: fresh.Mirror}},
		{[2]string{"m.example", "m2.example"}, config.Own{Private: fresh.Private, Publish: fresh.Publish, Mirror: "3"}},
		{[2]string{", mirror: {url: 'https://m.example/', tokenFile: t}", ""}, config.Own{Private: fresh.Private, Publish: fresh.Publish, Mirror: "3"}},
		{[2]string{"private: 'https://r.example/npm/'", "enabled: false, private: 'https://r.example/npm/'"}, now},
	} {
		after := read(strings.Replace(start, c.change[0], c.change[1], 1) + "}, pypi: {")
		if got := after.OwnAfter(before.Mount("npm"), now); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.change, got, c.want)
		}
	}
	pypi := func(index string) *config.Config {
		return load(t, withFiles("mounts: {pypi: {mirror: {url: 'https://m.example/', index: 'https://"+index+"/', usernameFile: u, passwordFile: p}}}", secrets()))
	}
	same, other := pypi("i.example"), pypi("j.example")
	if a, b := same.OwnAfter(same.Mount("pypi"), now), other.OwnAfter(same.Mount("pypi"), now); a.Mirror != basicOf("ann", "secret-p") || b.Mirror != "3" {
		t.Errorf("the index of a mirror: %+v, %+v", a, b)
	}
	after := read(strings.Replace(start, "privateTokenFile: t,", "privateUsernameFile: u, privatePasswordFile: p,", 1))
	if got := after.OwnAfter(before.Mount("npm"), now).Private; got != basicOf("ann", "secret-p") {
		t.Errorf("another kind of login: %q", got)
	}
	if keys := before.NeedRestart(after); len(keys) != 0 {
		t.Errorf("%q need a restart", keys)
	}
	if keys := before.NeedRestart(read(strings.Replace(start, "firstParty", "overlap: shadow, firstParty", 1))); !slices.Equal(keys, []string{"mounts.npm.overlap"}) {
		t.Errorf("%q need a restart", keys)
	}
}
