package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// pip installs a tree of private and public distributions from the gate alone, without
// --extra-index-url: the private plum, the public apple that it needs, of the releases the newest
// that is neither withdrawn nor too young nor for another Python, and pear from both.
func TestPipInstall(t *testing.T) {
	for _, p := range pips(t) {
		t.Run(p.version, func(t *testing.T) {
			t.Parallel()
			o := newOrchard(t)
			g := serveGate(t, o.config(""))
			s := newSandbox(t)
			got, r := p.target(t, s, g.pypi(), "plum")
			t.Logf("%v\n%s", r.took, r.output)
			if want := []string{"apple " + appleGood, "pear 1.0", "plum 3.1"}; !slices.Equal(got, want) {
				t.Errorf("installed %q, want %q", got, want)
			}
			if strings.Contains(r.output, hostOf(o.public.files)) || strings.Contains(r.output, hostOf(o.private.url)) {
				t.Errorf("the client went past the gate:\n%s", r.output)
			}
			o.noSecrets(t)
			o.counted(t, g)
			for _, host := range []*fakepypi.Host{o.public.Index, o.private.Index, o.public.Files} {
				if host.Count() == 0 {
					t.Error("a host was never asked")
				}
			}
		})
	}
}

// A credential in the index URL opens the private index, and no public host ever sees it.
func TestPipCredential(t *testing.T) {
	o := newOrchard(t)
	o.private.Index.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "ann" && password == "a secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", "Basic realm=x")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	g := serveGate(t, o.config(""))
	p := pips(t)[0]
	open := strings.Replace(g.pypi(), "http://", "http://ann:a%20secret@", 1)
	if got, _ := p.target(t, newSandbox(t), open, "plum"); !slices.Equal(got, []string{"apple 1.1", "pear 1.0", "plum 3.1"}) {
		t.Errorf("installed %q", got)
	}
	if r := p.run(t, newSandbox(t), g.pypi(), "install", "--target", t.TempDir(), "plum"); r.code == 0 {
		t.Errorf("a private project was installed without a credential:\n%s", r.output)
	}
	o.noSecrets(t)
	o.counted(t, g)
}

// pipCase is one thing that people do with pip.
type pipCase struct {
	name string
	args []string // after "install --target DIR"
	want []string // what is installed; nil: it fails
	says []string
	only func(pip) bool
}

func pipCases(t *testing.T, o *orchard) []pipCase {
	sum := func(version string) string {
		name := "apple-" + version + "-py3-none-any.whl"
		return "--hash=sha256:" + fakepypi.Sum(o.public.file(t, "apple", name).Content)
	}
	pear := "--hash=sha256:" + fakepypi.Sum(o.public.file(t, "pear", "pear-1.0-py3-none-any.whl").Content)
	dir := t.TempDir()
	write(t, dir, "right.txt", "apple==1.1 "+sum("1.1")+"\npear==1.0 "+pear+"\n")
	write(t, dir, "wrong.txt", "apple==1.1 "+sum("1.0")+"\npear==1.0 "+pear+"\n")
	return []pipCase{
		{name: "a range", args: []string{"apple<3"}, want: []string{"apple 1.1", "pear 1.0"}},
		{name: "only wheels", args: []string{"--only-binary", ":all:", "sources"}, want: []string{"sources 1.0"}},
		{
			name: "no wheels", args: []string{"--no-binary", ":all:", "--no-build-isolation", "--use-pep517", "--no-deps", "apple"},
			want: []string{"apple 1.1"}, only: func(p pip) bool { return p.builds },
		},
		{
			name: "sources that are newer", args: []string{"--no-build-isolation", "--no-deps", "sources"},
			want: []string{"sources 1.1"}, only: func(p pip) bool { return p.builds },
		},
		{name: "a pin on a withdrawn release", args: []string{"apple==1.2"}, want: []string{"apple 1.2"}, says: []string{"yanked", yankText}},
		{name: "a release for another Python", args: []string{"apple==2.0"}, says: []string{"No matching distribution found for apple==2.0"}},
		{name: "an older one of two", args: []string{"apple==1.0", "pear<1"}, want: []string{"apple 1.0", "pear 0.9.5"}},
		{name: "the right hashes", args: []string{"--require-hashes", "-r", filepath.Join(dir, "right.txt")}, want: []string{"apple 1.1", "pear 1.0"}},
		{name: "a wrong hash", args: []string{"--require-hashes", "-r", filepath.Join(dir, "wrong.txt")}, says: []string{"DO NOT MATCH THE HASHES"}},
		// C21
		{name: "another spelling of the name", args: []string{"Fluffy.Server"}, want: []string{"fluffy_server 1.0"}},
		{name: "a pin on a release that is too young", args: []string{"apple==1.3"}, says: []string{"No matching distribution found for apple==1.3"}},
		// HEAD and ranges
		{name: "a lazy wheel", args: []string{"--use-feature=fast-deps", "bare"}, want: []string{"bare 1.0", "pear 1.0"}},
		{name: "no such project", args: []string{"nothing-here"}, says: []string{"No matching distribution found for nothing-here"}},
	}
}

// firstTwo are the system's pip and that on PATH: the others only show that they install at all.
func firstTwo(all []pip) []pip { return all[:min(2, len(all))] }

// What people do with pip gives what the index alone would give, less what the rules refuse.
func TestPip(t *testing.T) {
	o := newOrchard(t)
	g := serveGate(t, o.config("cache: {ttl: 1h}\n"))
	cases := pipCases(t, o)
	for _, p := range firstTwo(pips(t)) {
		t.Run(p.version, func(t *testing.T) {
			for _, c := range cases {
				if c.only != nil && !c.only(p) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					r := p.run(t, newSandbox(t), g.pypi(), append([]string{"install", "--target", dir}, c.args...)...)
					if (r.code == 0) != (c.want != nil) {
						t.Errorf("exit code %d", r.code)
					}
					if got := distributions(t, dir); !slices.Equal(got, c.want) {
						t.Errorf("installed %q, want %q", got, c.want)
					}
					for _, text := range c.says {
						if !strings.Contains(r.output, text) {
							t.Errorf("the user does not see %q", text)
						}
					}
					if t.Failed() {
						t.Log(r.output)
					}
				})
			}
		})
	}
	t.Cleanup(func() { o.counted(t, g) })
}

// pip download keeps the bytes that were published, and pip index versions lists what the rules
// admit.
func TestPipDownloadAndVersions(t *testing.T) {
	o := newOrchard(t)
	g := serveGate(t, o.config(""))
	for _, p := range firstTwo(pips(t)) {
		t.Run(p.version, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			p.must(t, s, g.pypi(), "download", "-d", "got", "plum")
			for _, f := range []fakepypi.File{
				o.public.file(t, "apple", "apple-1.1-py3-none-any.whl"), o.public.file(t, "pear", "pear-1.0-py3-none-any.whl"),
				o.private.file(t, "plum", "plum-3.1-py3-none-any.whl"),
			} {
				if got, err := os.ReadFile(filepath.Join(s.dir, "got", f.Name)); err != nil || !bytes.Equal(got, f.Content) {
					t.Errorf("%s is not what was published: %v", f.Name, err)
				}
			}
			r := p.must(t, s, g.pypi(), "index", "versions", "apple")
			if !strings.Contains(r.output, "Available versions: 1.1, 1.0\n") {
				t.Errorf("pip index versions:\n%s", r.output)
			}
		})
	}
}

// A tree of plain files behind Python's own web server: HTML only, one host for pages and files,
// links relative, no times. Nothing is admitted until a rule names it, since the age is unknown.
func TestStaticIndex(t *testing.T) {
	public := startIndex(t)
	public.Publish("apple", fakepypi.Wheel("apple", "1.1", fakepypi.Requires("pear")), fakepypi.Wheel("apple", "1.2", fakepypi.Yanked("")),
		fakepypi.Wheel("apple", "2.0", fakepypi.RequiresPython(">=9.1")))
	public.Publish("pear", fakepypi.Wheel("pear", "1.0"))
	public.Publish("sources", fakepypi.Sdist("sources", "1.1"))
	tree := staticIndex(t, public)
	config := "mounts:\n  npm: {public: 'http://127.0.0.1:9/'}\n  pypi: {public: '" + tree + "/simple/', files: ['" + tree + "']}\n"
	shut := serveGate(t, config)
	open := serveGate(t, config+"rules: {named: {type: AllowByIdentity, packages: [apple, pear, sources]}}\n")
	for _, p := range firstTwo(pips(t)) {
		t.Run(p.version, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			if got, _ := p.target(t, s, open.pypi(), "apple"); !slices.Equal(got, []string{"apple 1.1", "pear 1.0"}) {
				t.Errorf("installed %q", got)
			}
			if p.builds {
				if got, _ := p.target(t, s, open.pypi(), "--no-build-isolation", "sources"); !slices.Equal(got, []string{"sources 1.1"}) {
					t.Errorf("installed %q", got)
				}
			}
			if r := p.run(t, s, shut.pypi(), "install", "--target", "shut", "apple"); r.code == 0 {
				t.Errorf("a distribution of unknown age was installed:\n%s", r.output)
			}
		})
	}
	for _, m := range managers(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			v := newVenture(t, m, open.pypi(), map[string]string{"apple": "<3"})
			v.must(t, m.both...)
			if got := v.installed(t); !slices.Equal(got, []string{"apple 1.1", "pear 1.0"}) {
				t.Errorf("installed %q", got)
			}
		})
	}
}

// poetry and pdm lock and install, private and public together, and what stands in the lock file
// are the index's own hashes.
func TestManagersLockAndInstall(t *testing.T) {
	o := newOrchard(t)
	g := serveGate(t, o.config(""))
	for _, m := range managers(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			v := newVenture(t, m, g.pypi(), map[string]string{"plum": ">=3"})
			r := v.must(t, m.lock...)
			t.Logf("lock: %v\n%s", r.took, r.output)
			lock, err := os.ReadFile(filepath.Join(v.dir, m.lockFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []fakepypi.File{
				o.public.file(t, "apple", "apple-1.1-py3-none-any.whl"), o.public.file(t, "apple", "apple-1.1.tar.gz"),
				o.public.file(t, "pear", "pear-1.0-py3-none-any.whl"), o.private.file(t, "plum", "plum-3.1-py3-none-any.whl"),
			} {
				if !strings.Contains(string(lock), "sha256:"+fakepypi.Sum(f.Content)) {
					t.Errorf("the lock file lacks the hash of %s:\n%s", f.Name, lock)
				}
			}
			for _, upstream := range []string{o.public.url, o.public.files, o.private.url} {
				if strings.Contains(string(lock), hostOf(upstream)) {
					t.Errorf("the lock file names an upstream:\n%s", lock)
				}
			}
			r = v.must(t, m.install...)
			t.Logf("install: %v\n%s", r.took, r.output)
			if got := v.installed(t); !slices.Equal(got, []string{"apple 1.1", "pear 1.0", "plum 3.1"}) {
				t.Errorf("installed %q", got)
			}
			if again, err := os.ReadFile(filepath.Join(v.dir, m.lockFile)); err != nil || !bytes.Equal(again, lock) {
				t.Errorf("the installation changed the lock file: %v", err)
			}
		})
	}
	t.Cleanup(func() { o.noSecrets(t); o.counted(t, g) })
}
