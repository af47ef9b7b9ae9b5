package gatecmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/toy/toyserving"
)

// toyWorld is a toy box, a place for mirrored and published toys, and a configuration of both.
type toyWorld struct {
	t            *testing.T
	dir, config  string
	put          chan string   // what came to the mirror or the publication target: path and body
	shelf, admin string        // addresses of the gate
	stop         func() string // ends the gate and gives what it wrote to stderr
}

func newToyWorld(t *testing.T) *toyWorld {
	t.Helper()
	w := &toyWorld{t: t, dir: t.TempDir(), put: make(chan string, 10)}
	box := fakenpm.New("http://unused.test")
	box.Publish("car", "a", time.Now().AddDate(-1, 0, 0), nil)
	box.Publish("car", "b", time.Now(), nil)
	box.Publish("kite", "a", time.Now().AddDate(-1, 0, 0), nil)
	upstream := httptest.NewServer(box)
	t.Cleanup(upstream.Close)
	target := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			http.NotFound(rw, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		rw.WriteHeader(http.StatusCreated)
		w.put <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(target.Close)
	w.config = w.file("gate.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
dataDir: '%s'
mounts:
  npm: {public: 'http://127.0.0.1:9/'}
  pypi: {enabled: false}
  toy: {public: '%s/', firstParty: ['toy:mine'], mirror: {url: '%[3]s/'}, publish: {url: '%[3]s/'}}
rules:
  min-age: {type: AllowIfOlderThan, age: 7d}
`, filepath.Join(w.dir, "data"), upstream.URL, target.URL))
	return w
}

func (w *toyWorld) file(name, text string) string {
	w.t.Helper()
	name = filepath.Join(w.dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// run runs a command of a product that has the toy as well: the one line that adds it is the call
// of append.
func (w *toyWorld) run(ctx context.Context, stdout io.Writer, args ...string) (stderr string, err error) {
	w.t.Helper()
	var errs bytes.Buffer
	sys := &cli.System{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: &errs, Context: ctx}
	root := &cobra.Command{Use: "ecluse", SilenceUsage: true, SilenceErrors: true}
	root.SetOut(stdout)
	root.AddCommand(Commands(sys, "test", append(ecosystem.All(), toyserving.Ecosystem()))...)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	return errs.String(), err
}

// ask runs a command to its end and returns what it said.
func (w *toyWorld) ask(args ...string) string {
	w.t.Helper()
	var out bytes.Buffer
	if errs, err := w.run(w.t.Context(), &out, args...); err != nil {
		w.t.Errorf("%v: %v\n%s%s", args, err, &out, errs)
	}
	return out.String()
}

func (w *toyWorld) serve() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r, out := io.Pipe()
	ended, errs := make(chan struct{}), ""
	go func() {
		defer close(ended)
		stderr, err := w.run(ctx, out, "serve", "--config", w.config)
		errs = fmt.Sprintf("%s\n%v", stderr, err)
		_ = out.Close()
	}()
	w.stop = func() string {
		cancel()
		<-ended
		return errs
	}
	w.t.Cleanup(func() { w.stop() })
	lines := bufio.NewScanner(r)
	for _, want := range []struct {
		what string
		at   *string
	}{{"npm registry", new(string)}, {"status page", &w.admin}, {"toy shelf", &w.shelf}} {
		what, at, ok := "", "", lines.Scan()
		if what, at, _ = strings.Cut(lines.Text(), " at "); !ok || what != want.what {
			w.t.Fatalf("%q, want the address of the %s\n%s", lines.Text(), want.what, w.stop())
		}
		*want.at = strings.TrimSuffix(at, "/")
	}
}

func (w *toyWorld) request(method, url, body string, status int) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Authorization", "Bearer mine")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		w.t.Errorf("%s %s: %d, want %d; %.300s %v", method, url, resp.StatusCode, status, text, err)
	}
	return string(text)
}

// comes waits for something to arrive at the mirror or the publication target.
func (w *toyWorld) comes(want string) {
	w.t.Helper()
	select {
	case got := <-w.put:
		if got != want {
			w.t.Errorf("the target got %.80q, want %.80q", got, want)
		}
	case <-time.After(30 * time.Second):
		w.t.Errorf("%.80q did not come\n%s", want, w.stop())
	}
}

// An ecosystem that the product does not have is served, judged, published, mirrored and shown by
// the commands after one registration, and no other line.
func TestToyIsServed(t *testing.T) {
	w := newToyWorld(t)
	if out := w.ask("explain", "--config", w.config, "toy:CAR"); !strings.Contains(out, "toy:car@a") || !strings.Contains(out, "admitted") || !strings.Contains(out, "denied") {
		t.Errorf("explain:\n%s", out)
	}
	w.serve()
	if got, want := w.request("GET", w.shelf+"/car", "", 200), `[{"version":"a","url":"`+w.shelf+`/car/-/car-a.tgz"}]`; got != want {
		t.Errorf("listing: %s, want %s", got, want)
	}
	file := string(fakenpm.File("car", "a"))
	if got := w.request("GET", w.shelf+"/car/-/car-a.tgz", "", 200); got != file {
		t.Errorf("file: %.80q", got)
	}
	w.comes("/car-a.tgz " + file)
	if got := w.request("GET", w.shelf+"/car/-/car-b.tgz", "", 403); !strings.HasPrefix(got, "no: ") {
		t.Errorf("a refusal: %s", got)
	}
	w.request("POST", w.shelf+"/car", "x", 405)
	w.request("PUT", w.shelf+"/car", "x", 403)
	w.request("PUT", w.shelf+"/mine", "a new toy", 201)
	w.comes("/mine a new toy")
	if got := w.request("GET", w.admin+"/api/v1/explain?package=toy:kite@a", "", 200); !strings.Contains(got, `"package": "toy:kite"`) || !strings.Contains(got, `"admitted": true`) {
		t.Errorf("explain of the admin API: %s", got)
	}
	if got := w.request("GET", w.admin+"/metrics", "", 200); !strings.Contains(got, `route="toy_listing"`) {
		t.Error("no metric of the toy's listings")
	}
	out := w.ask("mirror", "add", "--config", w.config, "--lockfile", w.file("toys-dev.lock", "kite a\nnothing\n"))
	if !strings.HasPrefix(out, "files: 1, new jobs: 1, already queued: 0, entries not from a mirrored registry: 1, failed lookups: 0") {
		t.Errorf("mirror add: %s", out)
	}
	w.comes("/kite-a.tgz " + string(fakenpm.File("kite", "a")))
}

// What people read knows the toy as well.
func TestToyIsNamed(t *testing.T) {
	w := newToyWorld(t)
	for want, args := range map[string][]string{
		"explain npm:NAME[@VERSION]|pypi:NAME[@VERSION]|toy:NAME[@VERSION]...": {"explain", "--help"},
		"public toy box URL": {"serve", "--help"},
		"yarn.lock, bun.lock, requirements.txt, pylock.toml, uv.lock, poetry.lock, pdm.lock, toys.lock)": {"mirror", "add", "--help"},
		"mounts.toy.enabled:": {"check", "--config", w.config},
	} {
		if out := w.ask(args...); !strings.Contains(out, want) {
			t.Errorf("%v does not say %q:\n%s", args, want, out)
		}
	}
	for want, args := range map[string][]string{
		`"gem:x" is not a package: write npm:NAME or npm:NAME@VERSION, or the same with pypi: or toy:`:                                                   {"explain", "--config", w.config, "gem:x"},
		`"pypi:x" cannot be judged: mounts.pypi is switched off`:                                                                                         {"explain", "--config", w.config, "pypi:x"},
		"supported are package-lock.json, pnpm-lock.yaml, yarn.lock, bun.lock, requirements.txt, pylock.toml, uv.lock, poetry.lock, pdm.lock, toys.lock": {"mirror", "add", "--config", w.config, "--lockfile", w.file("gems.lock", "")},
		"no mirror is configured; set mounts.npm.mirror.url or mounts.pypi.mirror.url or mounts.toy.mirror.url":                                          {"mirror", "run", "--npm", "http://127.0.0.1:9/", "--toy", "http://127.0.0.1:9/", "--data", w.dir},
	} {
		if _, err := w.run(t.Context(), io.Discard, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
