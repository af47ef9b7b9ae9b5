package e2e_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// once throttles the first request that arrives.
func once(n int) (string, bool) { return "3", n == 1 }

func forEver(int) (string, bool) { return "2", true }

// hurry shortens the back-off that npm and pnpm have of their own, of 10 s and then 60 s, which
// they take instead of the header's. With ECLUSE_E2E_DEFAULTS=1 they keep it, as docs/clients.md
// tells.
func hurry() []string {
	if os.Getenv("ECLUSE_E2E_DEFAULTS") != "" {
		return nil
	}
	return []string{
		"npm_config_fetch_retry_mintimeout=1000", "npm_config_fetch_retry_maxtimeout=4000",
		"pnpm_config_fetch_retry_mintimeout=1000", "pnpm_config_fetch_retry_maxtimeout=4000",
	}
}

// patient also lets pnpm ask more often. It asks for a listing of itself beside the package, and on
// a busy machine the last of its three tries for the one may fall into the moment in which the
// other is finding out whether the cooldown is over.
func patient() []string {
	env := hurry()
	if env == nil {
		return nil
	}
	return append(env, "pnpm_config_fetch_retries=6")
}

// What each client makes of a short cooldown, of one without end, and of a gate that holds requests
// instead of refusing them. In each case the upstream is left alone for as long as it asked, the
// counter agrees with what arrived there, and the user sees what docs/clients.md says. (The
// upstream's 429 never reaches a client.)
func TestCooldown(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		section  string // of docs/clients.md
		throttle func(int) (string, bool)
		config   string
		env      []string
		fails    bool
	}{
		{"One short cooldown", once, "", patient(), false},
		{"An endless cooldown", forEver, "", hurry(), true},
		{"A gate that holds", once, "serve: {hold: 10s}\n", nil, false},
	} {
		seen := documented(t, c.section)
		for _, client := range clients(t) {
			t.Run(c.section+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				public := startFront(t, w.public.url)
				public.throttle = c.throttle
				g := serveGate(t, w.config(public.url, c.config))
				p := newProject(t, client, g.npm, w.private.token, map[string]string{"@pub/scoped": "^2.0.0"})
				p.env = c.env
				r := p.run(t, client.install...)
				t.Logf("exit code %d after %v\n%s", r.code, r.took, r.output)
				if failed := r.code != 0; failed != c.fails {
					t.Errorf("exit code %d", r.code)
				}
				for _, text := range seen[client.name] {
					if !strings.Contains(words(r.output), text) {
						t.Errorf("docs/clients.md says that the user sees %q", text)
					}
				}
				if seen[client.name] == nil {
					t.Errorf("docs/clients.md has no row for %s under %q", client.name, c.section)
				}
				if upstreamStatus.MatchString(r.output) {
					t.Error("the upstream's status reached the client")
				}
				public.leftAlone(t, g)
			})
		}
	}
}

// inFlight is how long after a throttled answer a request may still arrive that was on its way
// before.
const inFlight = 500 * time.Millisecond

// leftAlone wants no request at the upstream within the wait that it asked for, and the gate's own
// count to agree.
func (f *front) leftAlone(t *testing.T, g *gate) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, gap := range f.gaps {
		if gap.next > inFlight && gap.next < gap.wait {
			t.Errorf("request %d came %v after an answer that asked for %v", i+2, gap.next, gap.wait)
		}
	}
	if counted := g.publicRequests(t); counted != len(f.seen) {
		t.Errorf("ecluse_public_requests_total is %d, %d requests arrived: %q", counted, len(f.seen), f.seen)
	}
}

var upstreamStatus = regexp.MustCompile(`\b429\b`)

var publicRequests = regexp.MustCompile(`(?m)^ecluse_public_requests_total\{[^}]*\} (\d+)$`)

func (g *gate) publicRequests(t *testing.T) (sum int) {
	t.Helper()
	resp, err := http.Get(g.admin + "metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range publicRequests.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// documented reads what users see from a table of docs/clients.md: the code spans of the last
// column, by client.
func documented(t *testing.T, section string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for name, cells := range documentedCells(t, section) {
		rows[name] = []string{}
		for i, span := range strings.Split(cells[len(cells)-1], "`") {
			if i%2 == 1 {
				rows[name] = append(rows[name], span)
			}
		}
	}
	return rows
}

// documentedCells reads the rows of a table of docs/clients.md, by the text of the first cell.
func documentedCells(t *testing.T, section string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/clients.md has no section %q", section)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(part) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) >= 3 {
			rows[strings.TrimSpace(cells[0])] = cells
		}
	}
	return rows
}

// words makes one line of a client's output, without the frames that some draw around it.
func words(output string) string {
	return strings.Join(strings.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \t\r\n│➤", r) }), " ")
}
