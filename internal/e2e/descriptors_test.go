package e2e_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
)

// A gate without a descriptor says so in one line and a gauge, in the form of its log, and serves
// on when there are some again.
func TestOutOfDescriptors(t *testing.T) {
	public := httptest.NewUnstartedServer(nil)
	registry := fakenpm.New("http://" + public.Listener.Addr().String())
	public.Config.Handler = registry
	public.Start()
	defer public.Close()
	dir := t.TempDir()
	text := "mounts: {npm: {public: '" + public.URL + "'}, pypi: {enabled: false}}\nlog: {format: json}\ndataDir: data\n"
	if err := os.WriteFile(filepath.Join(dir, "ecluse.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, admin := freeAddress(t), freeAddress(t)
	out := start(t, dir, environment(dir), command(t, "sh"), "-c", `ulimit -n 40; exec "$0" serve --config ecluse.yaml --listen "$1" --admin "$2"`,
		binary, listen, admin)
	until(t, "the gate", func() bool { return answers("http://" + listen + "/readyz") })
	operator := &http.Client{} // whose connection is there before
	metrics := func() string {
		resp, err := operator.Get("http://" + admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	metrics()
	var conns []net.Conn
	closeAll := func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	defer closeAll()
	until(t, "no descriptor to be left", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			conns = append(conns, c)
		}
		return strings.Contains(metrics(), "\necluse_descriptors_exhausted 1\n")
	})
	closeAll()
	until(t, "descriptors again", func() bool { return strings.Contains(metrics(), "\necluse_descriptors_exhausted 0\n") })
	until(t, "an answer", func() bool { return answers("http://" + listen + "/readyz") })
	if n := strings.Count(out.String(), "out of file descriptors"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "{") {
			if !strings.Contains(line, " at http://") {
				t.Errorf("not in the form of the log: %s", line)
			}
		} else if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}
