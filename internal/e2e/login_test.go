package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// tokensOfTheGate is a file with the tokens of two people and of one who only reads.
func tokensOfTheGate(t *testing.T, dir string) string {
	t.Helper()
	write(t, dir, "tokens", "ann tok-of-ann\nbob tok-of-bob\nreader tok-of-reader read\n")
	return fmt.Sprintf("auth: {tokensFile: %q}\nserve: {helpMessage: ask the gate keepers}\n", filepath.Join(dir, "tokens"))
}

// behindTokens is a gate with tokens before the world, whose private registry it opens itself. It
// publishes there as well.
func (w *world) behindTokens(t *testing.T, public, private *front) *gate {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "verdaccio", w.private.token+"\n")
	return serveGate(t, fmt.Sprintf(`
mounts: {npm: {public: %q, private: %q, privateTokenFile: %q, firstParty: ["@acme/*"], publish: {url: %q}}}
rules:
  named: {type: AllowByIdentity, packages: [left-dep, "@pub/*"]}
%s`, public.url, private.url, filepath.Join(dir, "verdaccio"), private.url, tokensOfTheGate(t, dir)))
}

// R106: each client installs private and public packages with a token of the gate's, which reaches
// neither registry: the private one, a real Verdaccio with a login, sees the gate's own credential
// alone.
func TestTokensEndAtTheGate(t *testing.T) {
	w := newWorld(t)
	for i, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			public, private := startFront(t, w.public.url), startFront(t, w.private.url)
			g := w.behindTokens(t, public, private)
			token := []string{"tok-of-ann", "tok-of-bob", "tok-of-reader"}[i%3]
			p := newProject(t, c, g.npm, token, map[string]string{"@acme/core": "^1.0.0", "@pub/scoped": "^2.0.0"})
			p.must(t, c.install...)
			p.installed(t)
			if got := private.credentials(); !slices.Equal(got, []string{"Bearer " + w.private.token}) {
				t.Errorf("the private registry was sent %q", got)
			}
			seen, secrets := public.requests()
			if len(secrets) > 0 || strings.Contains(strings.Join(seen, " "), "acme") || len(seen) == 0 {
				t.Errorf("the public registry was sent a credential with %q, and asked for %q", secrets, seen)
			}
			// a caller without a token gets nothing of what the gate can read
			if resp, body := ask(t, http.MethodGet, g.npm+"@acme%2fcore"); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), "requires a token") {
				t.Errorf("%s %s", resp.Status, body)
			}
		})
	}
}

// What each client prints when the gate does not know its token stands in docs/clients.md; npm
// shows our sentence, and does not send its user to npm's own registry for a new password.
func TestUnknownToken(t *testing.T) {
	const section = "A gate with tokens, and one that it does not know"
	w := newWorld(t)
	public, private := startFront(t, w.public.url), startFront(t, w.private.url)
	g := w.behindTokens(t, public, private)
	seen := documented(t, section)
	for _, c := range clients(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, c, g.npm, "tok-of-nobody", map[string]string{"@pub/scoped": "^2.0.0"})
			p.env = hurry()
			r := p.run(t, c.install...)
			t.Logf("exit code %d after %v\n%s", r.code, r.took, r.output)
			if c.reason && !strings.Contains(words(r.output), "ask the gate keepers") {
				t.Error("the user does not see the help message")
			}
			if r.code == 0 || seen[c.name] == nil {
				t.Errorf("exit code %d; docs/clients.md says %q", r.code, seen[c.name])
			}
			for _, text := range seen[c.name] {
				if !strings.Contains(words(r.output), text) {
					t.Errorf("docs/clients.md says that the user sees %q", text)
				}
			}
			for _, wrong := range []string{"npm login", "password change", "forgot", "Incorrect or missing password"} {
				if strings.Contains(r.output, wrong) {
					t.Errorf("the user is told of %q:\n%s", wrong, r.output)
				}
			}
		})
	}
	t.Cleanup(func() {
		for _, f := range []*front{public, private} {
			if seen, _ := f.requests(); len(seen) > 0 {
				t.Errorf("an upstream was asked for a caller without a token: %q", seen)
			}
		}
	})
}

// R106: npm publish with a token of the gate's arrives at a real Verdaccio under the gate's own
// credential; a token for reading alone is refused before the target hears of it.
func TestPublishWithATokenOfTheGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public, private := startFront(t, w.public.url), startFront(t, w.private.url)
	g := w.behindTokens(t, public, private)
	npm := clients(t)[0]
	publish := func(token string) result {
		dir := t.TempDir()
		write(t, dir, "package.json", `{"name": "@acme/fresh", "version": "1.0.0", "license": "MIT"}`)
		write(t, dir, ".npmrc", npmrc(g.npm, token))
		return play(t, dir, environment(t.TempDir()), append(slices.Clone(npm.argv), "publish", "--fetch-retries=0", "--otp=123456")...)
	}
	if r := publish("tok-of-reader"); r.code == 0 || !strings.Contains(r.output, "this token may read and not publish") || private.count("PUT") != 0 {
		t.Errorf("a reader: %d %s", r.code, r.output)
	}
	if r := publish("tok-of-bob"); r.code != 0 {
		t.Errorf("publish: %s", r.output)
	}
	if doc := w.private.document(t, "@acme/fresh"); doc.Tags["latest"] != "1.0.0" {
		t.Errorf("the target has %v", doc.Tags)
	}
	if got := private.credentials(); !slices.Equal(got, []string{"Bearer " + w.private.token}) || private.count("PUT") != 1 {
		t.Errorf("the target was sent %q", got)
	}
}

// lockedIndex serves pages and files with nginx, to one user alone, as people run an index of their
// own. What it logs are the users that it let in.
func lockedIndex(t *testing.T, x *index, projects ...string) (url string, users func() string) {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	writePages(t, dir, x, projects...)
	write(t, dir, "htpasswd", "robot:{PLAIN}a long secret\n")
	write(t, dir, "nginx.conf", strings.ReplaceAll(`daemon off; master_process off; pid DIR/pid; error_log stderr;
events {}
http {
	log_format users '$status $remote_user $http_authorization'; access_log DIR/log users;
	client_body_temp_path DIR/c; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
	types { text/html html; }
	server { listen `+address+`; root DIR; auth_basic "the index"; auth_basic_user_file DIR/htpasswd; }
}
`, "DIR", dir))
	start(t, dir, environment(dir), command(t, "nginx"), "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	url = "http://" + address
	until(t, "nginx", func() bool {
		resp, err := http.Get(url + "/simple/")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	})
	return url, func() string { return (&project{dir: dir}).read(t, "log") }
}

// behindTokens is a gate with tokens before a public index and a private one with a login.
func (o *orchard) behindTokens(t *testing.T, private, more string) *gate {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "user", "robot\n")
	write(t, dir, "password", "a long secret\n")
	return serveGate(t, fmt.Sprintf("mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '%s/simple/', files: ['%s'], private: '%s/simple/', "+
		"privateUsernameFile: %q, privatePasswordFile: %q%s}\n%s", o.public.url, o.public.files, private, filepath.Join(dir, "user"), filepath.Join(dir, "password"),
		more, tokensOfTheGate(t, dir)))
}

// withToken is a gate's index with a token as the password. poetry sends what an address has for
// pages alone, and finds in its settings what an address without it needs.
func (g *gate) withToken(client, token string) string {
	if client == "poetry" {
		return g.pypi()
	}
	return strings.Replace(g.pypi(), "http://", "http://anybody:"+token+"@", 1)
}

// R106: each Python client installs with a token of the gate's from a private index with a login,
// which sees the gate's own alone, and what it prints for a token that the gate does not know
// stands in docs/clients.md.
func TestPythonTokens(t *testing.T) {
	const section = "Python: a gate with tokens, and one that it does not know"
	rows := documentedEnds(t, section)
	login := func(token string) []pythonClient {
		return pythonClients(t, "POETRY_HTTP_BASIC_GATE_USERNAME=anybody", "POETRY_HTTP_BASIC_GATE_PASSWORD="+token)
	}
	known, unknown := login("tok-of-ann"), login("tok-of-nobody")
	for i, client := range known {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			o := newOrchard(t)
			private, users := lockedIndex(t, o.private, "plum")
			g := o.behindTokens(t, private, ", firstParty: [plum]")
			r, got := client.install(t, g.withToken(client.name, "tok-of-ann"), "plum", ">=3")
			if want := []string{"apple " + appleGood, "pear 1.0", "plum 3.1"}; r.code != 0 || !slices.Equal(got, want) {
				t.Errorf("installed %q, want %q\n%s", got, want, r.output)
			}
			own := "robot Basic " + base64.StdEncoding.EncodeToString([]byte("robot:a long secret"))
			served := 0
			for line := range strings.Lines(users()) {
				if line = strings.TrimSpace(line); line == "200 "+own {
					served++
				} else if line != "404 "+own && line != "401 - -" { // that was until
					t.Errorf("the private index was sent %q", line)
				}
			}
			if served < 2 {
				t.Errorf("the private index served %d times", served)
			}
			o.noSecrets(t)
			asked := o.public.Index.Count() + o.public.Files.Count()
			r, got = unknown[i].install(t, g.withToken(client.name, "tok-of-nobody"), "plum", ">=3")
			t.Logf("exit code %d, installed %q\n%s", r.code, got, r.output)
			client.asDocumented(t, section, rows, r, got)
			if n := o.public.Index.Count() + o.public.Files.Count(); n != asked {
				t.Errorf("%d requests for a caller without a token", n-asked)
			}
		})
	}
}

// R106: twine uploads with a token of the gate's under the gate's own login.
func TestTwineWithATokenOfTheGate(t *testing.T) {
	t.Parallel()
	twine := command(t, "twine")
	o := newOrchard(t)
	o.private.takeUploads(t, "robot", "a long secret")
	g := o.behindTokens(t, o.private.url, fmt.Sprintf(", firstParty: [acme-tool], publish: {url: '%s/legacy/'}", o.private.url))
	upload := func(password string) result {
		s := newSandbox(t)
		wheel := fakepypi.Wheel("acme-tool", "1.0")
		write(t, s.dir, wheel.Name, string(wheel.Content))
		return play(t, s.dir, s.env, twine, "upload", "--non-interactive", "--disable-progress-bar", "--verbose", "--repository-url",
			strings.TrimSuffix(g.pypi(), "simple/")+"legacy/", "-u", "__token__", "-p", password, wheel.Name)
	}
	for token, says := range map[string]string{"tok-of-reader": "this token may read and not publish", "tok-of-nobody": "this gate does not know the token that was sent"} {
		if r := upload(token); r.code == 0 || !strings.Contains(words(r.output), says) || uploads(o.private) != 0 {
			t.Errorf("%s: %d %s", token, r.code, r.output)
		}
	}
	if r := upload("tok-of-ann"); r.code != 0 {
		t.Errorf("upload: %s", r.output)
	}
	for _, s := range o.private.Index.Seen() {
		if user, password, _ := (&http.Request{Header: s.Header}).BasicAuth(); user != "robot" || password != "a long secret" {
			t.Errorf("the private index was sent %s %s with %q", s.Method, s.Path, s.Header.Get("Authorization"))
		}
	}
	o.noSecrets(t)
}

// R106: a stranger's 99.0 of a private name that nobody declared first-party. With merge pip is
// offered it, and the start has warned; with shadow it gets the private one, also later without a
// credential for the private index: then nothing rather than the stranger's.
func TestDependencyConfusion(t *testing.T) {
	t.Parallel()
	p := pips(t)[0]
	const warning = "dependency confusion"
	for overlap, want := range map[string]string{"merge": "tool 99.0", "shadow": "tool 1.0"} {
		o := newOrchard(t)
		o.private.Publish("tool", fakepypi.Wheel("tool", "1.0"))
		o.public.Publish("tool", fakepypi.Wheel("tool", "99.0"))
		// strangers are told that there is nothing
		o.private.Index.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if user, _, _ := r.BasicAuth(); user == "ann" {
				return false
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		})
		g := serveGate(t, strings.Replace(o.config(""), "firstParty: [plum]", "overlap: "+overlap, 1))
		if got, r := p.target(t, newSandbox(t), strings.Replace(g.pypi(), "http://", "http://ann:secret@", 1), "tool"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: installed %q\n%s", overlap, got, r.output)
		}
		stranger := p.run(t, newSandbox(t), g.pypi(), "install", "--target", t.TempDir(), "tool")
		if (stranger.code == 0) != (overlap == "merge") {
			t.Errorf("%s: a stranger: %d %s", overlap, stranger.code, stranger.output)
		}
		if warned := strings.Contains(g.log.String(), warning); warned != (overlap == "merge") {
			t.Errorf("%s: warned %t", overlap, warned)
		}
		if asked := o.public.Index.CountSuffix("/tool/"); (asked == 0) != (overlap == "shadow") {
			t.Errorf("%s: the public index was asked %d times", overlap, asked)
		}
	}
}
