package server

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ecluse-gate/ecluse/internal/documents"
	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/quota"
)

// writeListing sends a listing in the encoding that the client takes, or 304 when it has just that
// representation.
func writeListing(w http.ResponseWriter, r *http.Request, l *gate.Listing) {
	h := w.Header()
	encoding := documents.Identity
	if l.Packs() {
		encoding = encodingFor(r.Header)
	}
	etag := l.ETag(encoding)
	h.Set("Etag", etag)
	listingHeader(h, l.Degraded, l.Cooldown)
	if matches(r.Header, etag) { // before anything is packed for it
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := l.Body(encoding)
	if encoding != documents.Identity {
		quota.End(r.Context()) // what is sent is small
		h.Set("Content-Encoding", string(encoding))
	}
	h.Set("Content-Type", l.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// listingHeader sets the fields that say how complete and how fresh a listing is, and who may keep
// it.
func listingHeader(h http.Header, degraded gate.Degradation, cooldown *gate.Unavailable) {
	h.Set("Vary", "Accept, Accept-Encoding")
	h.Set("Cache-Control", "private, no-cache")
	if degraded != gate.Complete && degraded != gate.DegradedRetained {
		h.Set("Cache-Control", "no-store")
		h.Set("Cache-Status", "ecluse; fwd=miss; detail=degraded")
	}
	if cooldown != nil {
		h.Set("Cache-Status", cacheStatus(cooldown, degraded == gate.DegradedRetained))
	}
}

// contentPolicy lets a browser run, load and embed nothing of what the gate serves: it is the work
// of strangers, under the gate's own origin.
const contentPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox allow-downloads"

// protect adds what keeps a browser from taking an answer for a page of the gate's. A policy of the
// upstream's stays: a browser obeys both.
func protect(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	if !slices.Contains(h.Values("Content-Security-Policy"), contentPolicy) {
		h.Add("Content-Security-Policy", contentPolicy)
	}
}

// writeArtifact streams a file or hands on an upstream's refusal. A body that breaks off, or that
// is not what the listing names, ends the connection, so that no client takes it for whole.
func (s *Server) writeArtifact(w http.ResponseWriter, r *http.Request, a *gate.Artifact) {
	defer a.Body.Close()
	h := w.Header()
	maps.Copy(h, a.Header)
	protect(h)
	if a.Relayed && h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	if a.Throttled {
		traceRefusal(r.Context(), refusal{status: a.Status, cooldown: &gate.Unavailable{Cooldown: true, Forwarded: true}})
	}
	// a kept file: the kernel copies it, and ranges are served
	if file, ok := a.Body.(io.ReadSeeker); ok {
		h.Del("Content-Length")
		http.ServeContent(w, r, "", time.Time{}, file)
		return
	}
	w.WriteHeader(a.Status)
	if r.Method == http.MethodHead {
		return
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := a.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			s.cut(r, err)
		}
	}
}
