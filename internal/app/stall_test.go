package app

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// Issue 13: 200 clients that never read their answers and 50 that drip their requests hold no place
// for long: others are answered all the same, where only few requests may be at work.
func TestStallingClientsAreAlone(t *testing.T) {
	doc := packument.Generate("p", 1000, 1, packument.Weight(8000, 40))
	s := benchServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(doc) }), "serve.maxInFlight", "16", "serve.wait", "20s")
	gate := httptest.NewUnstartedServer(s.Handler())
	gate.Config.ConnContext, gate.Config.ReadHeaderTimeout = KeepConn, 10*time.Second
	gate.Start()
	defer gate.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	// answered is what a client that reads gets: each time the listing, and no 503
	const times = 10
	answered := func() time.Duration {
		start := time.Now()
		for n := range times {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, gate.URL+"/npm/p", nil)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s after %d answers, %v", resp.Status, n, err)
			}
			_ = resp.Body.Close()
		}
		return time.Since(start)
	}
	answered() // the first of them is cold
	before := answered()
	open := func(text string) net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", gate.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var stalling []net.Conn
	defer func() {
		for _, c := range stalling {
			_ = c.Close()
		}
	}()
	for range 200 {
		stalling = append(stalling, open("GET /npm/p HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"))
	}
	for range 50 {
		stalling = append(stalling, open("GET /npm/p HTT"))
	}
	for start := time.Now(); ; {
		stuck := bytes.Count(stacks(), []byte("(*paced).piece("))
		if stuck >= 190 {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("only %d clients are stuck", stuck)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("%d listings in %v, and in %v beside clients that stall", times, before, answered())
}

func stacks() []byte {
	buf := make([]byte, 16<<20)
	return buf[:runtime.Stack(buf, true)]
}
