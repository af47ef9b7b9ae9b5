// Package memnet is a network inside the process: listeners and dials by name over net.Pipe, which
// works under virtual time, where sockets do not.
package memnet

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Network is one such network. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex // guards all below
	listeners map[string]*listener
	dials     map[string]int
}

// New returns an empty network.
func New() *Network { return &Network{listeners: map[string]*listener{}, dials: map[string]int{}} }

// ErrRefused is what a dial to an address without a listener ends with.
var ErrRefused = errors.New("memnet: connection refused")

// Listen opens a listener for "host:port".
func (n *Network) Listen(addr string) net.Listener {
	l := &listener{network: n, addr: memAddr(addr), conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = l
	return l
}

// Dial connects to a listener; it has the form of net.Dialer.DialContext.
func (n *Network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	l, ok := n.listeners[addr]
	n.dials[addr]++
	n.mu.Unlock()
	if !ok {
		return nil, ErrRefused
	}
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, ErrRefused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Dials counts the attempts to connect to an address.
func (n *Network) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

type listener struct {
	network *Network
	addr    memAddr
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		if l.network.listeners[string(l.addr)] == l {
			delete(l.network.listeners, string(l.addr))
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type memAddr string

func (memAddr) Network() string  { return "mem" }
func (a memAddr) String() string { return string(a) }
