package config_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
	"github.com/ecluse-gate/ecluse/internal/policy"
)

const fileName = "ecluse.yaml"

// with loads a file's text and environment lines, with an npm whose configuration names an
// upstream.
func with(file string, environ ...string) config.Options {
	return config.Options{
		File: fileName, Environ: environ, Ecosystems: ecosystemtest.All(),
		ReadFile: func(name string) ([]byte, error) {
			if name != fileName {
				return nil, fs.ErrNotExist
			}
			return []byte(file), nil
		},
		Tools: tool(func(context.Context) (string, error) { return "https://npm.example/\n", nil }),
	}
}

// tool is npm on the machine.
func tool(npm func(context.Context) (string, error)) map[string]func(context.Context) (string, error) {
	return map[string]func(context.Context) (string, error){"npm": npm}
}

func load(t *testing.T, o config.Options) *config.Config {
	t.Helper()
	c, err := config.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems loads what must be refused and returns every problem as "key: text".
func problems(t *testing.T, o config.Options) []config.Problem {
	t.Helper()
	_, err := config.Load(t.Context(), o)
	p, ok := errors.AsType[*config.Problems](err)
	if !ok {
		t.Fatalf("accepted, or another kind of error: %v", err)
	}
	return p.List
}

func TestDefaults(t *testing.T) {
	c := load(t, with(""))
	if c.Listen != "127.0.0.1:4873" || c.Admin != "127.0.0.1:4874" || c.DataDir != "./ecluse-data" || c.PublicURL != nil {
		t.Errorf("addresses: %+v", c)
	}
	if c.Mount("npm").Public.String() != "https://npm.example/" || c.Mount("npm").Private != nil || c.Mount("npm").PrivateFailure != config.Refuse {
		t.Errorf("npm mount: %+v", c.Mount("npm"))
	}
	if want := (config.Cache{TTL: time.Minute, MaxBytes: 256 << 20, DiskBytes: 1 << 30, MaxDocument: 128 << 20, MaxStale: time.Hour}); c.Cache != want {
		t.Errorf("cache %+v, want %+v", c.Cache, want)
	}
	if want := (config.Serve{Wait: time.Second, Drain: 30 * time.Second}); !reflect.DeepEqual(c.Serve, want) {
		t.Errorf("serve %+v, want %+v", c.Serve, want)
	}
	wantRules := []policy.Spec{{Name: "min-age", Type: policy.AllowIfOlderThan, Age: 168 * time.Hour}}
	if diff := cmp.Diff(wantRules, c.Rules); diff != "" {
		t.Error(diff)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings about the defaults: %q", c.Warnings)
	}
}

// The whole file of the documentation is accepted, and means the defaults.
func TestDocumentedFile(t *testing.T) {
	c := load(t, with(documented))
	plain := load(t, with(""))
	if c.Cache != plain.Cache || !reflect.DeepEqual(c.Serve, plain.Serve) || c.Log != plain.Log || !cmp.Equal(c.Rules, plain.Rules) {
		t.Errorf("the documented file is not the defaults:\n%+v\n%+v", c, plain)
	}
}

// The example of the README is accepted.
func TestReadmeExample(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(text), "```yaml\n")
	example, _, closed := strings.Cut(example, "```")
	if !found || !closed {
		t.Fatal("the README has no example")
	}
	if c := load(t, with(example)); len(c.Rules) != 3 || len(c.Warnings) != 0 || c.Serve.HelpMessage == "" {
		t.Errorf("the example means %+v", c)
	}
}

const documented = `
listen: 127.0.0.1:4873
publicURL: http://127.0.0.1:4873
admin: 127.0.0.1:4874
dataDir: ./ecluse-data
auth: {tokensFile: ""}
mounts:
  npm:
    public: ""
    private: ""
    privateFailure: refuse
    firstParty: []
    mirror: {url: "", tokenFile: ""}
    publish: {url: ""}
  pypi:
    public: https://pypi.org/simple/
    files: [https://files.pythonhosted.org]
    private: ""
    firstParty: []
    mirror: {url: "", usernameFile: "", passwordFile: ""}
    publish: {url: ""}
rules:
  min-age: {type: AllowIfOlderThan, age: 168h}
advisories: {source: "", interval: 1h}
integrity: {minPublic: sha256, minTrusted: sha256}
cache: {ttl: 60s, maxBytes: 256MiB, maxStale: 1h}
artifacts: {maxBytes: 10GiB}
serve: {maxInFlight: 0, wait: 1s, hold: 0s, drain: 30s, helpMessage: ""}
egress: {caFile: "", allowHTTP: [], blockedRanges: []}
queue: {url: ""}
cooldown: {shared: ""}
log: {format: auto, level: info}
telemetry: {otlp: ""}
`

func TestLayers(t *testing.T) {
	o := with("serve:\n  hold: 1s\n  wait: 2s\n  drain: 3s\n", "ECLUSE_SERVE__HOLD=4s", "ECLUSE_SERVE__WAIT=5s", "OTHER=1", "ECLUSEX=2")
	o.Flags = map[string]string{"serve.hold": "6s"}
	c := load(t, o)
	if c.Serve.Hold != 6*time.Second || c.Serve.Wait != 5*time.Second || c.Serve.Drain != 3*time.Second {
		t.Errorf("flags > environment > file > defaults does not hold: %+v", c.Serve)
	}
	got := map[string]config.Setting{}
	for _, s := range c.Settings() {
		got[s.Key] = s
	}
	for key, want := range map[string]config.Setting{
		"serve.hold":        {Key: "serve.hold", Value: "6s", Layer: config.FromFlag},
		"serve.wait":        {Key: "serve.wait", Value: "5s", Layer: config.FromEnv, Source: "ECLUSE_SERVE__WAIT"},
		"serve.drain":       {Key: "serve.drain", Value: "3s", Layer: config.FromFile, Line: 4},
		"cache.ttl":         {Key: "cache.ttl", Value: "60s", Layer: config.FromDefault},
		"mounts.npm.public": {Key: "mounts.npm.public", Value: "https://npm.example/", Layer: config.FromTool("npm")},
		"rules.min-age.age": {Key: "rules.min-age.age", Value: "168h", Layer: config.FromDefault},
	} {
		if got[key] != want {
			t.Errorf("%s: %+v, want %+v", key, got[key], want)
		}
	}
}

func TestHiddenValuesAreCheckedToo(t *testing.T) {
	expect(t, with("serve: {hold: 5}", "ECLUSE_SERVE__HOLD=3s"), "serve.hold", "needs a unit")
	c := load(t, with("mounts: {npm: {private: 'https://a.example'}}", "ECLUSE_MOUNTS__NPM__PRIVATE="))
	if c.Mount("npm").Private != nil {
		t.Errorf("an empty variable leaves the file's %v", c.Mount("npm").Private)
	}
}

func TestEnvironmentSpellings(t *testing.T) {
	for _, name := range []string{"ECLUSE_CACHE__MAXBYTES", "ECLUSE_CACHE__MAX_BYTES", "ECLUSE_cache__maxBytes"} {
		if c := load(t, with("", name+"=1KiB")); c.Cache.MaxBytes != 1024 {
			t.Errorf("%s was not read: %d", name, c.Cache.MaxBytes)
		}
	}
	c := load(t, with("egress: {allowHTTP: [a.example]}", "ECLUSE_EGRESS__ALLOWHTTP=B.example:81, c.example"))
	if diff := cmp.Diff([]string{"b.example:81", "c.example:80"}, c.Egress.AllowHTTP); diff != "" {
		t.Error(diff)
	}
	c = load(t, with("", "ECLUSE_RULES__MIN_AGE__AGE=1h", "ECLUSE_RULES__OURS__TYPE=AllowByIdentity", "ECLUSE_RULES__OURS__PACKAGES=a,@b/*"))
	want := []policy.Spec{
		{Name: "min-age", Type: policy.AllowIfOlderThan, Age: time.Hour},
		{Name: "ours", Type: policy.AllowByIdentity, Packages: []string{"a", "@b/*"}},
	}
	if diff := cmp.Diff(want, c.Rules); diff != "" {
		t.Error(diff)
	}
}

// The upstream comes from npm only when no layer names one; asking must not happen otherwise.
func TestNPMIsAskedLast(t *testing.T) {
	o := with("mounts: {npm: {public: https://mine.example/npm}}")
	o.Tools = tool(func(context.Context) (string, error) {
		t.Error("npm was asked although the file names the upstream")
		return "", nil
	})
	if c := load(t, o); c.Mount("npm").Public.String() != "https://mine.example/npm" {
		t.Errorf("public is %v", c.Mount("npm").Public)
	}
	o = with("")
	o.Tools = tool(func(context.Context) (string, error) { return "", errors.New("npm is not installed") })
	p := problems(t, o)
	if len(p) != 1 || p[0].Key != "mounts.npm.public" || !strings.Contains(p[0].Text, "npm is not installed") || !strings.Contains(p[0].Text, "--npm") {
		t.Errorf("problems %+v", p)
	}
	o.Tools = tool(func(context.Context) (string, error) { return "https://user:hunter2@npm.example/", nil })
	if p = problems(t, o); len(p) != 1 || strings.Contains(fmt.Sprint(p), "hunter2") {
		t.Errorf("a password in npm's configuration: %+v", p)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ key, text, problem string }{
		{"serve.wait", "7d", ""},
		{"serve.wait", "1h30m", ""},
		{"serve.wait", "0", ""},
		{"serve.wait", "5", "needs a unit"},
		{"serve.wait", "-5s", "may not have a sign"},
		{"serve.wait", "+5s", "may not have a sign"},
		{"serve.wait", "200000000d", "not a duration"},
		{"serve.wait", "1.5d", "not a duration"},
		{"serve.wait", "soon", "not a duration"},
		{"serve.wait", "[1s]", "one value, not a list"},
		{"serve.wait", "", "no value"},
		{"serve.wait", "{a: 1}", "unknown key"},
		{"serve.maxInFlight", "12", ""},
		{"serve.maxInFlight", "-1", "whole number"},
		{"serve.maxInFlight", "1e3", "whole number"},
		{"serve.helpMessage", "'see the wiki: #gate'", ""},
		{"serve.helpMessage", "|\n    two\n    lines", "one line"},
		{"cache.maxBytes", "0", ""},
		{"cache.maxBytes", "10 GB", ""},
		{"cache.maxBytes", "1.5GiB", "not a size"},
		{"cache.maxBytes", "9999999TiB", "not a size"},
		{"cache.maxBytes", "-1", "not a size"},
		{"egress.allowHTTP", "registry.example", "must be a list"},
		{"egress.allowHTTP", "[[a]]", "plain values only"},
		{"egress.allowHTTP", "['a.example:0']", "egress.allowHTTP"},
		{"egress.allowHTTP", "['http://a.example']", "write host or host:port"},
		{"egress.allowHTTP", "['u@a.example']", "write host or host:port"},
		{"log.level", "loud", "not one of debug, info, warn, error"},
		{"log", "info", "a group of settings"},
		{"listen", "4873", "not host:port"},
		{"listen", "localhost:0", ""},
		{"listen", "'[::1]:4873'", ""},
		{"listen", "localhost:070", "without leading zeros"},
		{"listen", "localhost:65536", "0 to 65535"},
		{"listen", `""`, "not host:port"},
		{"admin", `""`, ""},
		{"admin", "127.0.0.1:4873", "collides with listen"},
		{"admin", "0.0.0.0:4873", "collides with listen"},
		{"dataDir", `" "`, "must not be empty"},
		{"auth.tokensFile", "missing.txt", "cannot be read"},
		{"egress.caFile", "missing.pem", "cannot be read"},
	} {
		t.Run(c.key+"="+c.text, func(t *testing.T) {
			group, leaf, nested := strings.Cut(c.key, ".")
			file := group + ": " + c.text
			if nested {
				file = group + ":\n  " + leaf + ": " + c.text
			}
			expect(t, with(file+"\n"), c.key, c.problem)
		})
	}
}

// expect wants exactly one problem, at key and containing text, or none at all when text is "".
func expect(t *testing.T, o config.Options, key, text string) {
	t.Helper()
	if text == "" {
		load(t, o)
		return
	}
	p := problems(t, o)
	if len(p) != 1 || !strings.HasPrefix(p[0].Key, key) || !strings.Contains(p[0].Key+": "+p[0].Text, text) {
		t.Errorf("problems %+v; want one at %s with %q", p, key, text)
	}
}

func TestURLs(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct{ url, problem string }{
		{"https://r.example", ""},
		{"https://r.example/npm/", ""},
		{"https://r.example:8443/", ""},
		{"http://127.0.0.1:9/", ""},
		{"http://[::1]:9/", ""},
		{"http://localhost:9/", ""},
		{"http://r.example/", "plain http"},
		{"http://127.0.0.1.r.example/", "plain http"},
		{"https://u:" + secret + "@r.example/", "user name or password"},
		{"https://" + secret + "@r.example/", "user name or password"},
		{"https://u:" + secret + "@r.example:x/", "not a URL"},
		{"https://r.example/?token=" + secret, "query"},
		{"https://r.example/?", "query"},
		{"https://r.example/#" + secret, "fragment"},
		{"https://r.example/#", "fragment"},
		{"https://r.example:/", "not usable as an address"},
		{"https://r.example:0/", "not usable as an address"},
		{"https://r.example:65536/", "not usable as an address"},
		{"https://r.example:0443/", "not usable as an address"},
		{"https:///npm", "no host"},
		{"https:r.example", "no host"},
		{"ftp://r.example", "must begin with https://"},
		{"r.example", "must begin with https://"},
		{"https://r.example/a/../b", "path segment"},
	} {
		t.Run(c.url, func(t *testing.T) {
			for _, key := range []string{"public", "private"} {
				o := with(fmt.Sprintf("mounts: {npm: {%s: %q}}", key, c.url))
				expect(t, o, "mounts.npm."+key, c.problem)
				if c.problem != "" {
					if _, err := config.Load(t.Context(), o); strings.Contains(err.Error(), secret) {
						t.Errorf("the report shows a secret: %v", err)
					}
				}
			}
		})
	}
	load(t, with("mounts: {npm: {public: 'http://r.example/'}}\negress: {allowHTTP: ['R.example']}"))
}

func TestContradictions(t *testing.T) {
	for _, c := range []struct{ name, file, key, problem string }{
		{"same upstream twice", "mounts: {npm: {public: 'https://r.example/x', private: 'https://R.example:443/x/'}}", "mounts.npm.private", "same as"},
		{"the gate as its upstream", "mounts: {npm: {public: 'http://localhost:4873/npm'}}", "mounts.npm.public", "the gate itself"},
		{"the gate behind its public name", "publicURL: https://gate.example\nmounts: {npm: {private: 'https://gate.example/npm'}}", "mounts.npm.private", "the gate itself"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, with(c.file), c.key, c.problem) })
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"rules: {min-age: {enabled: false}}", "no rule admits"},
		{"rules: {min-age: {type: DenyByIdentity, packages: [a]}}", "no rule admits"},
		{"listen: 0.0.0.0:4873", "publicURL"},
		{"listen: ':4873'", "publicURL"},
		{"listen: 0.0.0.0:4873", "begin with http:// and the host that each client's request names"},
	} {
		if w := load(t, with(c.file)).Warnings; len(w) != 1 || !strings.Contains(w[0], c.want) {
			t.Errorf("%s: warnings %q, want one with %q", c.file, w, c.want)
		}
	}
}

func TestNotYet(t *testing.T) {
	for _, c := range []string{
		"cooldown: {shared: 'valkey://v.example'}",
	} {
		p := problems(t, with(c))
		if len(p) != 1 || !strings.Contains(p[0].Text, "not supported by this version") {
			t.Errorf("%s: problems %+v", c, p)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, c := range []struct{ name, file, env, key, problem string }{
		{"key", "serv: {hold: 1s}", "", "serv.hold", "did you mean serve.hold?"},
		{"key in a group", "serve: {hodl: 1s}", "", "serve.hodl", "did you mean serve.hold?"},
		{"far from anything", "zzzzzz: 1", "", "zzzzzz", "unknown key"},
		{"dotted", "serve.hold: 1s", "", "serve.hold", "nest the settings"},
		{"letter case", "Listen: 127.0.0.1:1", "", "Listen", "did you mean listen?"},
		{"variable", "", "ECLUSE_SERVE__HODL=1s", "", "did you mean ECLUSE_SERVE__HOLD?"},
		{"variable of nothing", "", "ECLUSE_QQQQQQQQQQ=1s", "", "unknown variable"},
		{"variable spelled twice", "", "ECLUSE_CACHE__MAXBYTES=1\nECLUSE_CACHE__MAX_BYTES=2", "cache.maxBytes", "set twice"},
		{"rule key", "rules: {min-age: {agee: 1h}}", "", "rules.min-age.agee", "did you mean age?"},
		{"rule type", "rules: {x: {type: AllowIfOlder, age: 1h}}", "", "rules.x.type", "did you mean AllowIfOlderThan?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var env []string
			if c.env != "" {
				env = strings.Split(c.env, "\n")
			}
			expect(t, with(c.file, env...), c.key, c.problem)
		})
	}
}

func TestYAML(t *testing.T) {
	for _, c := range []struct{ name, file, problem string }{
		{"empty", "", ""},
		{"only comments", "# nothing\n\n", ""},
		{"empty group", "serve:\n", ""},
		{"empty document", "---\n", ""},
		{"syntax", "serve: {hold: 1s\n", "not readable as YAML"},
		{"a scope without quotes", "\nrules: {a: {type: AllowByIdentity, packages: [@acme/x]}}\n", "not readable as YAML: a value that begins with @, % or a backquote must be quoted"},
		{"duplicate key", "listen: a:1\nlisten: b:2\n", "duplicate key; first on line 1"},
		{"two documents", "listen: a:1\n---\nlisten: b:2\n", "second YAML document"},
		{"not a mapping", "- a\n", "must consist of settings"},
		{"a text", "hello\n", "must consist of settings"},
		{"anchor", "listen: &x a:1\n", "is not supported"},
		{"merge key", "serve:\n  <<: {hold: 1s}\n", "plain word"},
		{"deep", "a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}\n", "nested too deeply"},
		{"huge", "#" + strings.Repeat("x", 1<<20), "at most"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, with(c.file), "", c.problem) })
	}
	o := with("")
	o.File = "elsewhere.yaml"
	if p := problems(t, o); len(p) != 1 || !strings.Contains(p[0].Text, "elsewhere.yaml does not exist") {
		t.Errorf("missing file: %+v", p)
	}
}

func FuzzFile(f *testing.F) {
	f.Add(documented)
	f.Add("rules: {a: {type: DenyByIdentity, packages: [x]}}")
	f.Add("a: &a [*a]")
	f.Add("rulez: {}\r\nrules: {never: {}}\rlisten: *x")
	f.Fuzz(func(t *testing.T, file string) {
		c, err := config.Load(t.Context(), with(file))
		if p, ok := errors.AsType[*config.Problems](err); ok {
			for _, q := range p.List {
				if q.Layer == config.FromFile && (q.Line < 1 || q.Line > strings.Count(file, "\n")+strings.Count(file, "\r")+1) {
					t.Errorf("line %d of %q: %s: %s", q.Line, file, q.Key, q.Text)
				}
			}
		}
		if err == nil && (c.Mount("npm").Enabled && c.Mount("npm").Public == nil || c.Serve.Wait < 0 || c.Cache.MaxBytes < 0) {
			t.Errorf("accepted what is not whole: %+v", c)
		}
	})
}

// Everything that is wrong comes in one report, each problem with its place, in the order of the
// file.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := config.Load(t.Context(), with("listen: nowhere\nserve:\n  hold: long\n  hodl: 1s\nrules:\n  x: {type: Allow}\n", "ECLUSE_CACHE__TTL=x", "ECLUSE_NONSENSE=1"))
	for _, want := range []string{
		"6 problems", "ecluse.yaml:1: listen: ", "ecluse.yaml:3: serve.hold: ", "ecluse.yaml:4: serve.hodl: ", "ecluse.yaml:6: rules.x.type: ",
		"ECLUSE_CACHE__TTL: cache.ttl: ", "ECLUSE_NONSENSE: unknown variable",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}
