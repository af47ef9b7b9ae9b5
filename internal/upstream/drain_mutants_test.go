package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// What is left of an answer that nobody wants is read when that is little, whether its length is
// known or not, and however much of it was read before; otherwise its connection is closed. Area
// connections.
func TestTheRestOfABody(t *testing.T) {
	const little = 64 << 10
	for name, c := range map[string]struct {
		size    int
		chunked bool
		read    int
		dials   int
	}{
		"little":                  {little, false, 0, 1},
		"little in chunks":        {little, true, 0, 1},
		"much in chunks":          {1 << 20, true, 0, 2},
		"much":                    {little + 1, false, 0, 2},
		"little is left of much":  {2 * little, false, little, 1},
		"all of it has been read": {2 * little, false, 2*little + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, upstream.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.chunked {
					w.(http.Flusher).Flush()
				} else {
					w.Header().Set("Content-Length", strconv.Itoa(c.size))
				}
				_, _ = io.WriteString(w, strings.Repeat("x", c.size))
				w.(http.Flusher).Flush() // before the end of the chunks
			}, func(b *bench) {
				for range 2 {
					resp, err := b.public.Do(b.t.Context(), b.request(upstream.Artifact))
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.CopyN(io.Discard, resp.Body, int64(c.read))
					resp.Body.Close()
					synctest.Wait()
				}
				if n := b.network.Dials(benchHost + ":80"); n != c.dials {
					t.Errorf("%d connections for two requests, want %d", n, c.dials)
				}
			})
		})
	}
}

// Closing waits for a twentieth of a second at most for what is left, for nothing at all if that is
// much, and not for a Read, which ends then. What is read after it is an error.
func TestClosingDoesNotWaitForTheUpstream(t *testing.T) {
	for name, c := range map[string]struct {
		length  int
		reading bool
		takes   time.Duration
	}{
		"little":             {100, false, 50 * time.Millisecond},
		"much":               {1 << 20, false, 0},
		"little, while read": {100, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, upstream.Options{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(c.length))
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				silent(w, r)
			}, func(b *bench) {
				for _, kind := range []upstream.Kind{upstream.Metadata, upstream.Artifact} {
					resp, err := b.public.Do(b.t.Context(), b.request(kind))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
					read := make(chan error, 1)
					if c.reading {
						go func() {
							_, err := resp.Body.Read(make([]byte, 1))
							read <- err
						}()
						synctest.Wait()
					}
					begin := time.Now()
					resp.Body.Close()
					if took := time.Since(begin); took != c.takes {
						t.Errorf("%s: closing took %v, want %v", kind, took, c.takes)
					}
					if c.reading {
						if f, ok := errors.AsType[*upstream.Failure](<-read); !ok {
							t.Errorf("%s: the Read ended with %v", kind, f)
						}
					}
					if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
						t.Errorf("%s: a Read after it: %v", kind, err)
					}
					resp.Body.Close()
				}
			})
		})
	}
}
