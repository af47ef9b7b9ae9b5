package emulator

import (
	"context"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ecluse-gate/ecluse/internal/emulator/service"
)

// send writes the answer with the delays and the breakage that the act asks for, and completes the
// record.
func (e *Emulator) send(w http.ResponseWriter, r *http.Request, record *Request, reply service.Answer, act *Act) {
	if act == nil {
		act = &Act{}
	}
	done := Answer{Status: reply.Status, Headers: reply.Header, Reset: act.Reset}
	if !pause(r.Context(), act.DelayMS) {
		done.Status, done.Headers, done.Gone = 0, nil, true
		e.finish(record, done)
		panic(http.ErrAbortHandler)
	}
	if act.Reset == "before-headers" {
		done.Status, done.Headers = 0, nil
		e.finish(record, done)
		breakConnection(w)
	}
	if act.Reset == "after-headers" && len(reply.Body) == 0 {
		reply.Body = []byte("{}") // so that the announced body is really missing
	}
	header := w.Header()
	maps.Copy(header, reply.Header)
	bodyAllowed := reply.Status != http.StatusNoContent && reply.Status != http.StatusNotModified
	if bodyAllowed {
		header.Set("Content-Length", strconv.Itoa(len(reply.Body)))
	}
	// The record is complete before the client can see the answer, so that a test never waits for
	// it.
	e.finish(record, done)
	w.WriteHeader(reply.Status)
	flush(w)
	if act.Reset == "after-headers" {
		panic(http.ErrAbortHandler)
	}
	if bodyAllowed && r.Method != http.MethodHead {
		e.writeBody(w, r, record, done, reply.Body, act.TrickleMS)
	}
	if act.Reset == "after-body" {
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

func (e *Emulator) writeBody(w http.ResponseWriter, r *http.Request, record *Request, done Answer, body []byte, trickle int) {
	if trickle == 0 {
		_, _ = w.Write(body) // a client that left is no fault of ours
		return
	}
	for i := range body {
		if !pause(r.Context(), trickle) {
			done.Gone = true
			e.finish(record, done)
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(body[i : i+1])
		flush(w)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// breakConnection ends the connection without an answer: with a reset where the connection is TCP,
// else by closing it. It does not return.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// pause waits the given milliseconds; false means that the client left first.
func pause(ctx context.Context, ms int) bool {
	if ms == 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
