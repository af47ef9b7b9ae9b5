package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/fake/packument"
)

// shortPace makes minutes of stalling short ones.
var shortPace = Pace{Window: 400 * time.Millisecond, Bytes: 8 << 10}

// onSocket lets a handler answer behind real sockets, and returns a connection that has sent a
// request, and what the handler ended with.
func onSocket(t *testing.T, request string, h func(http.ResponseWriter, *http.Request) error) (*net.TCPConn, <-chan error) {
	t.Helper()
	ended := make(chan error, 8)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := newPaced(w, r, shortPace)
		defer p.end()
		ended <- h(p, p.request)
	}))
	s.Config.ConnContext = KeepConn
	s.Start()
	t.Cleanup(s.Close)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), ended
}

// Issue 13: a client that takes nothing is given up after a window, whichever way the answer goes,
// and one that takes it slowly and steadily gets all of it, however large the system's buffers are.
func TestAnswersHaveAPace(t *testing.T) {
	const size = 4 << 20
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(http.ResponseWriter, *http.Request) error{
		"written": func(w http.ResponseWriter, _ *http.Request) error {
			n := 0
			var err error
			for ; n < 4 && err == nil; n++ { // more than all buffers take
				_, err = w.Write(make([]byte, size))
			}
			return err
		},
		"from a file": func(w http.ResponseWriter, _ *http.Request) error {
			var err error
			for n := 0; n < 4 && err == nil; n++ {
				var f *os.File
				if f, err = os.Open(name); err != nil {
					return err
				}
				_, err = io.CopyN(w, f, size)
				_ = f.Close()
			}
			return err
		},
	}
	for way, h := range ways {
		t.Run(way+", never read", func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, ended := onSocket(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", h)
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > 10*shortPace.Window {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		t.Run(way+", slow and steady", func(t *testing.T) {
			t.Parallel()
			c, ended := onSocket(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", h)
			_ = c.SetReadBuffer(64 << 10)
			piece, got := make([]byte, 64<<10), 0
			for tick := time.NewTicker(50 * time.Millisecond); got < size; <-tick.C {
				n, err := io.ReadFull(c, piece)
				if got += n; err != nil {
					t.Fatalf("%d bytes, %v", got, err)
				}
			}
			if _, err := io.CopyN(io.Discard, c, 3*size); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Issue 13: the same for the body of a request.
func TestRequestsHaveAPace(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}
	const head = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
	for name, c := range map[string]struct {
		piece int
		err   error
	}{"stops": {0, errStalled}, "drips": {10, errStalled}, "slow and steady": {20_000, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			conn, ended := onSocket(t, head, read)
			go func() {
				tick := time.NewTicker(40 * time.Millisecond)
				defer tick.Stop()
				for sent := 0; c.piece > 0 && sent < 1_000_000; sent += c.piece {
					if _, err := conn.Write(make([]byte, c.piece)); err != nil {
						return
					}
					<-tick.C
				}
			}()
			if err := <-ended; !errors.Is(err, c.err) || c.err != nil && time.Since(start) > 3*shortPace.Window {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// Issue 13: a body that the answer does not depend on is not waited for, and its connection closed;
// one that is there leaves the connection to the next request.
func TestBodyThatNobodyWants(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := w.Write(bytes.Repeat([]byte("x"), 10_000))
		return err
	}
	for method, most := range map[string]time.Duration{"POST": leftoverTime + time.Second, "GET": leftoverTime / 2} {
		start := time.Now()
		c, _ := onSocket(t, method+" / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome", ok)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || !resp.Close || time.Since(start) > most {
			t.Errorf("%s: %v, %v after %v", method, resp, err, time.Since(start))
		}
	}
	c, ended := onSocket(t, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsome", ok)
	br := bufio.NewReader(c)
	for range 2 {
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.Close {
			t.Fatalf("%v, %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		<-ended
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	}
}

// Issue 13: clients that do not take their answers hold no places.
func TestClientsThatNeverReadHoldNoPlaces(t *testing.T) {
	inWorld(t, Options{MaxInFlight: 4, Wait: time.Second}, func(w *world) {
		w.Public.SetDocument("a", packument.Generate("a", 100, 1, packument.Published(longAgo.AddDate(-1, 0, 0), time.Hour)))
		w.Want(w.Get("/npm/a"), 200, -1)
		for range 20 {
			c := w.Dial()
			defer c.Close()
			go func() { _, _ = io.WriteString(c, "GET /npm/a HTTP/1.1\r\nHost: x\r\n\r\n") }()
		}
		synctest.Wait()
		time.Sleep(2 * time.Second) // 20 clients, 4 places, 0.2 seconds each
		start := time.Now()
		for range 20 {
			w.Want(w.Get("/npm/a"), 200, -1)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("others waited %v", d)
		}
	})
}

// Issue 13: an upload without a credential, or of a name that is not published here, is refused
// before its body is there; one that stalls ends after a window. Publishing stays open all the time
// but for eight with a credential.
func TestUploadsThatStall(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.Target = func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(http.StatusCreated) }
		fields := func(name string) string {
			return "--b\r\nContent-Disposition: form-data; name=\":action\"\r\n\r\nfile_upload\r\n" +
				"--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n" + name + "\r\n" +
				"--b\r\nContent-Disposition: form-data; name=\"content\"; filename=\"x\"\r\n\r\n" + strings.Repeat("x", 10_000)
		}
		stall := func(head, body string) (answer chan *http.Response) {
			answer = make(chan *http.Response, 1)
			c := w.Dial()
			w.T.Cleanup(func() { _ = c.Close() })
			go func() { _, _ = io.WriteString(c, head+"Host: x\r\nContent-Length: 1000000\r\n\r\n"+body) }()
			go func() {
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Error(err)
				}
				answer <- resp
			}()
			return answer
		}
		const put, post = "PUT " + corePath + " HTTP/1.1\r\n", "POST /pypi/legacy/ HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
		const credential = "Authorization: Bearer mine\r\n"
		for _, c := range []struct {
			head, body string
			status     int
		}{
			{put, "{", 401},
			{put + "Authorization: Bearer \r\n", "{", 401},
			{post, fields("acme-tool"), 401},
			{"PUT /npm/left-pad HTTP/1.1\r\n" + credential, "{", 403},
			{post + credential, fields("requests"), 403},
		} {
			var answers []chan *http.Response
			start := time.Now()
			for range 2 * maxPublications {
				answers = append(answers, stall(c.head, c.body))
			}
			for _, a := range answers {
				if resp := <-a; resp.StatusCode != c.status || !resp.Close {
					t.Errorf("%s: %d, close %v", c.head, resp.StatusCode, resp.Close)
				}
			}
			if d := time.Since(start); d > leftoverTime {
				t.Errorf("%s: answered after %v", c.head, d)
			}
		}
		publish := func() int {
			return w.Do(http.MethodPut, corePath, coreDoc, "Authorization", "Bearer mine").Status
		}
		var stalled sync.WaitGroup
		start := time.Now()
		for i := range maxPublications {
			a := stall([]string{put, post}[i%2]+credential, fields("acme-tool"))
			stalled.Go(func() {
				if resp := <-a; resp.StatusCode != http.StatusRequestTimeout || time.Since(start) > defaultPace.Window+2*time.Second {
					t.Errorf("%d after %v", resp.StatusCode, time.Since(start))
				}
			})
		}
		synctest.Wait()
		if got := publish(); got != http.StatusServiceUnavailable {
			t.Errorf("the ninth: %d", got)
		}
		stalled.Wait()
		if got := publish(); got != http.StatusCreated {
			t.Errorf("after them: %d", got)
		}
		time.Sleep(time.Second) // the server lingers for those that it has closed
	})
}

// Issue 13: a client that is slow with a file that comes slowly itself is not blamed for that.
func TestWaitingForTheUpstreamIsNotTheClients(t *testing.T) {
	inWorld(t, Options{Pace: Pace{Window: time.Second, Bytes: 1 << 20}}, func(w *world) {
		w.Public.Publish("a", "1.0.0", longAgo, nil)
		w.Want(w.Get("/npm/a"), 200, -1)
		file := fakenpm.File("a", "1.0.0")
		w.Public.Answer(func(rw http.ResponseWriter, _ *http.Request) bool {
			for _, part := range bytes.SplitAfterN(file, file[len(file)/2:len(file)/2+8], 2) {
				_, _ = rw.Write(part)
				_ = http.NewResponseController(rw).Flush()
				time.Sleep(5 * time.Second)
			}
			return true
		})
		if a := w.Get(fileA); a.Status != 200 || a.Err != nil || a.Body != string(file) {
			t.Errorf("%d, %d bytes, %v", a.Status, len(a.Body), a.Err)
		}
	})
}
