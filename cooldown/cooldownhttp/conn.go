package cooldownhttp

import (
	"context"
	"net"
	"sync/atomic"
)

// DialContext wraps the DialContext of the *http.Transport that is Base, or lies below it. With it
// an HTTP/1 request is judged once more by the very call that puts its first bytes on the wire:
// net/http hands a request to a goroutine of the connection, which on a busy machine may come to it
// some milliseconds after the judgement. Without it that gap stays. HTTP/2 connections are not
// concerned. With a proxy of that Transport the connection is the proxy's, and the same holds for
// what is written through it; the CONNECT request itself is no request to the authority.
func DialContext(
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
}

// conn is a connection that asks the exchange that has it before it writes.
type conn struct {
	net.Conn
	exchange atomic.Pointer[exchange] // of HTTP/1; nil during a handshake
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if e := c.exchange.Load(); e != nil {
		if err := e.mayWrite(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// connOf finds the conn below a connection of net/http.
func connOf(c net.Conn) (*conn, bool) {
	own, ok := below(c).(*conn)
	return own, ok
}

// below is the connection below those that encrypt: none, one, or two where a proxy is spoken to in
// TLS as well.
func below(c net.Conn) net.Conn {
	for {
		encrypts, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = encrypts.NetConn()
	}
}

// mayWrite is why the request may not be written any more, when nothing of it has been written yet.
func (e *exchange) mayWrite() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flushed {
		return nil
	}
	if e.stopped == nil && !e.settled && e.judge() {
		e.flushed = true
		return nil
	}
	if e.stopped == nil { // answered before it was written
		return nil
	}
	e.written = false // it only reached the transport's buffer
	e.cancel(e.stopped)
	return e.stopped
}
