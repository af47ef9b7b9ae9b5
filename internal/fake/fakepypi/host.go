// Package fakepypi is a Python package index for tests, with its files host: both serve what was
// published, record every request, and let a test answer instead of them. Wheels and source
// archives are made here, so that real installers can install them.
package fakepypi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Host is one of the two servers, an http.Handler. It is safe for concurrent use.
type Host struct {
	serve http.HandlerFunc

	mu     sync.Mutex // guards all below
	answer func(http.ResponseWriter, *http.Request) bool
	seen   []Seen
}

// Seen is one request as it arrived.
type Seen struct {
	Method, Path string // Path is escaped
	Query        string
	Header       http.Header
	At           time.Time
}

// Answer lets a function answer first; when it returns false the host answers as usual. nil takes
// it away.
func (h *Host) Answer(fn func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = fn
}

// Always answers every request with a status and header fields, given as pairs.
func (h *Host) Always(status int, header ...string) {
	h.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "upstream says %d", status)
		return true
	})
}

// Seen returns every request so far, in order.
func (h *Host) Seen() []Seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// Count is the number of requests so far.
func (h *Host) Count() int { return len(h.Seen()) }

// CountSuffix is the number of requests so far whose path ends so.
func (h *Host) CountSuffix(suffix string) (n int) {
	for _, s := range h.Seen() {
		if strings.HasSuffix(s.Path, suffix) {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.seen = append(h.seen, Seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), time.Now()})
	answer := h.answer
	h.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	h.serve(w, r)
}
