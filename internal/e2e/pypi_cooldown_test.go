package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
)

// throttle makes a host answer the first requests with 429, n < 0 all of them, and notes when. What
// it asked for is checked by alone.
func throttle(h *fakepypi.Host, n int, retryAfter string) *holdings {
	held := &holdings{host: h}
	held.wait, _ = time.ParseDuration(retryAfter + "s")
	h.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		held.mu.Lock()
		defer held.mu.Unlock()
		if n >= 0 && len(held.at) >= n {
			return false
		}
		held.at = append(held.at, time.Now())
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "slow down", http.StatusTooManyRequests)
		return true
	})
	return held
}

type holdings struct {
	host *fakepypi.Host
	wait time.Duration

	mu sync.Mutex
	at []time.Time // when it answered 429
}

// alone wants no request at the host within the wait that each throttled answer asked for.
func (h *holdings) alone(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.at) == 0 {
		t.Error("the host never throttled: the test shows nothing")
	}
	for _, at := range h.at {
		for _, s := range h.host.Seen() {
			if after := s.At.Sub(at); after > inFlight && after < h.wait {
				t.Errorf("%s %s came %v after an answer that asked for %v", s.Method, s.Path, after, h.wait)
			}
		}
	}
}

// pythonClient installs one project in the releases that a specifier allows (">=3") into somewhere
// new; what is there in the end comes back.
type pythonClient struct {
	name    string
	install func(t *testing.T, index, project, specifier string) (result, []string)
}

// pythonClients are all of them; env is for the project managers.
func pythonClients(t *testing.T, env ...string) (all []pythonClient) {
	for _, p := range firstTwo(pips(t)) {
		all = append(all, pythonClient{p.name, func(t *testing.T, index, project, specifier string) (result, []string) {
			dir := t.TempDir()
			return p.run(t, newSandbox(t), index, "install", "--target", dir, project+specifier), distributions(t, dir)
		}})
	}
	for _, m := range managers(t) {
		all = append(all, pythonClient{m.name, func(t *testing.T, index, project, specifier string) (result, []string) {
			m.env = append(slices.Clone(m.env), env...)
			v := newVenture(t, m, index, map[string]string{project: specifier})
			return v.run(t, m.both...), v.installed(t)
		}})
	}
	return all
}

// What each Python client makes of a short cooldown of the index or of the files, of one without
// end, and of a gate that holds: docs/clients.md. Meanwhile the other of the two authorities (R30)
// goes on, and nobody disturbs the one that cools.
func TestPythonCooldown(t *testing.T) {
	for _, c := range []struct {
		section string
		host    func(*index) *fakepypi.Host
		n       int
		after   string
		config  string
	}{
		{"Python: one short cooldown of the index", func(x *index) *fakepypi.Host { return x.Index }, 1, "3", ""},
		{"Python: one short cooldown of the files", func(x *index) *fakepypi.Host { return x.Files }, 1, "3", ""},
		{"Python: an index that never recovers", func(x *index) *fakepypi.Host { return x.Index }, -1, "1", ""},
		{"Python: a files host that never recovers", func(x *index) *fakepypi.Host { return x.Files }, -1, "1", ""},
		{"Python: a gate that holds", func(x *index) *fakepypi.Host { return x.Index }, 1, "3", "serve: {hold: 20s}\n"},
	} {
		rows := documentedEnds(t, c.section)
		for _, client := range pythonClients(t) {
			t.Run(c.section+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				o := newOrchard(t)
				held := throttle(c.host(o.public), c.n, c.after)
				g := serveGate(t, o.config(c.config))
				r, got := client.install(t, g.pypi(), "plum", ">=3")
				t.Logf("exit code %d after %v, %d requests at the index and %d at the files, installed %q\n%s", r.code, r.took,
					o.public.Index.Count(), o.public.Files.Count(), got, r.output)
				client.asDocumented(t, c.section, rows, r, got)
				held.alone(t)
				o.counted(t, g)
				o.noSecrets(t)
			})
		}
	}
}

// end is a row of docs/clients.md: whether the client installs in the end, and what its user sees.
type end struct {
	installs bool
	shows    []string
}

func documentedEnds(t *testing.T, section string) map[string]end {
	t.Helper()
	ends := map[string]end{}
	shows := documented(t, section)
	for name, cells := range documentedCells(t, section) {
		ends[name] = end{strings.TrimSpace(cells[1]) == "installed", shows[name]}
	}
	return ends
}

// asDocumented wants a client to end as its row says, and to show its user what stands there. Both
// pips have one row.
func (c pythonClient) asDocumented(t *testing.T, section string, rows map[string]end, r result, installed []string) {
	t.Helper()
	row, ok := rows[strings.Fields(c.name)[0]]
	if !ok {
		t.Fatalf("docs/clients.md has no row for %s under %q", c.name, section)
	}
	if (r.code == 0) != row.installs || row.installs == (len(installed) == 0) {
		t.Errorf("exit code %d with %q installed; docs/clients.md says installed: %t", r.code, installed, row.installs)
	}
	for _, text := range row.shows {
		if !strings.Contains(words(r.output), text) {
			t.Errorf("docs/clients.md says that the user sees %q", text)
		}
	}
}

// A release that is too young is installed neither from a range, which finds an older one, nor from
// a pin, and a project of young releases only is refused whole. What each client shows stands in
// docs/clients.md.
func TestPythonRefusal(t *testing.T) {
	o := newOrchard(t)
	g := serveGate(t, o.config("cache: {ttl: 1h}\nserve: {helpMessage: ask the gate keepers}\n"))
	for _, c := range []struct{ section, project, specifier string }{
		{"Python: a young release beside older ones", "apple", "<1.4"},
		{"Python: a pin on a young release", "apple", "==1.3"},
		{"Python: a project with young releases only", "too-young", ">=1"},
	} {
		rows := documentedEnds(t, c.section)
		for _, client := range pythonClients(t)[len(firstTwo(pips(t)))-1:] {
			t.Run(c.section+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				r, got := client.install(t, g.pypi(), c.project, c.specifier)
				t.Logf("exit code %d, installed %q\n%s", r.code, got, r.output)
				client.asDocumented(t, c.section, rows, r, got)
				if slices.Contains(got, "apple 1.3") || slices.Contains(got, "too_young 1.0") {
					t.Errorf("a release that is too young is installed: %q", got)
				}
			})
		}
	}
	t.Cleanup(func() {
		if n := o.public.Files.CountSuffix("apple-1.3-py3-none-any.whl") + o.public.Files.CountSuffix("too_young-1.0-py3-none-any.whl"); n > 0 {
			t.Errorf("%d requests for a file that is too young", n)
		}
		resp, body := ask(t, http.MethodGet, g.pypi()+"too-young/")
		for _, text := range []string{"min-age", "versions are admitted 7 days after", "ask the gate keepers"} {
			if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(body), text) {
				t.Errorf("%s %s", resp.Status, body)
			}
		}
	})
}

// A storm on the index while files flow, a storm on files while the index answers, and one on
// companions: the counts at both hosts (R30, R34, R50, R51). A throttled file is handed on once, as
// it came; whoever comes next hears of the cooldown and nothing is sent.
func TestPythonStorms(t *testing.T) {
	const wheel = "pear-1.0-py3-none-any.whl"
	for _, storm := range []struct {
		name, path string
		host       func(*index) *fakepypi.Host
		relayed    bool
	}{
		{"index", "simple/grape-%d/", func(x *index) *fakepypi.Host { return x.Index }, false},
		{"files", "files/apple/apple-1.%d-py3-none-any.whl", func(x *index) *fakepypi.Host { return x.Files }, true},
		{"companions", "files/apple/apple-1.%d-py3-none-any.whl.metadata", func(x *index) *fakepypi.Host { return x.Files }, true},
	} {
		t.Run(storm.name, func(t *testing.T) {
			o := newOrchard(t)
			g := serveGate(t, o.config("cache: {ttl: 1h}\nartifacts: {maxBytes: 0}\n"))
			root := strings.TrimSuffix(g.pypi(), "simple/")
			for _, project := range []string{"apple", "pear"} {
				if resp, body := ask(t, http.MethodGet, root+"simple/"+project+"/"); resp.StatusCode != http.StatusOK {
					t.Fatalf("%s %s", resp.Status, body)
				}
			}
			held := throttle(storm.host(o.public), -1, "30")
			before := storm.host(o.public).Count()
			first, body := ask(t, http.MethodGet, root+fmt.Sprintf(storm.path, 0))
			if want := map[bool]int{true: http.StatusTooManyRequests, false: http.StatusServiceUnavailable}[storm.relayed]; first.StatusCode != want ||
				first.Header.Get("Retry-After") != "30" || storm.relayed && string(body) != "slow down\n" {
				t.Errorf("the first: %s, Retry-After %q, %q", first.Status, first.Header.Get("Retry-After"), body)
			}
			answers := swarm(t, 100, func(i int) string { return root + fmt.Sprintf(storm.path, i%2) })
			if answers[http.StatusServiceUnavailable] != 100 {
				t.Errorf("answers: %v", answers)
			}
			if sent := storm.host(o.public).Count() - before; sent != 1 {
				t.Errorf("%d requests were sent to a host that asked for a pause", sent)
			}
			held.alone(t)
			// The other authority goes on.
			path, want := "files/pear/"+wheel, map[bool]int{false: http.StatusOK, true: http.StatusServiceUnavailable}[storm.relayed]
			if resp, _ := ask(t, http.MethodGet, root+path); resp.StatusCode != want {
				t.Errorf("a file during the storm: %s", resp.Status)
			}
			if resp, _ := ask(t, http.MethodGet, root+"simple/sources/"); resp.StatusCode != map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[storm.relayed] {
				t.Errorf("a page during the storm: %s", resp.Status)
			}
			o.counted(t, g)
		})
	}
}

// swarm sends n requests at once and counts the statuses. Each 503 must say when to come back.
func swarm(t *testing.T, n int, url func(i int) string) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[int]int{}
	for i := range n {
		wg.Go(func() {
			resp, err := http.Get(url(i))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || seconds < 1 {
				t.Errorf("%s with Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
			}
			mu.Lock()
			answers[resp.StatusCode]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return answers
}
