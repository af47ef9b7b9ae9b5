package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Pace is how fast a client has to be: in each Window that the gate waits for it, it takes or sends
// so many Bytes, or it is given up. Whole transfers may last as long as they want.
type Pace struct {
	Window time.Duration
	Bytes  int64
}

// defaultPace is 1 KiB a second. It bounds how long one that stalls holds what it holds.
var defaultPace = Pace{Window: 30 * time.Second, Bytes: 30 << 10}

const (
	// paceLook is how often a client that does not take more is looked at while it has a place
	// among serve.maxInFlight. One that took nothing in between gives that to another.
	paceLook = 100 * time.Millisecond
	// pacePiece is what is handed to the connection at once.
	pacePiece = 256 << 10
	// What is read, and for how long, of a body that nobody wants, so that the connection can be
	// used again.
	leftoverBytes = 256 << 10
	leftoverTime  = time.Second
	leftoverRead  = 10 * time.Millisecond // of a GET or HEAD, which has no use for a body
)

// errStalled is the end of a body whose client sends too little.
var errStalled = errors.New("the client sends too slowly")

// Paced gives up clients that stall while they send a request to h or take its answer.
func Paced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := newPaced(w, r, Pace{})
		defer p.end()
		h.ServeHTTP(p, p.request)
	})
}

type connKey struct{}

// KeepConn is for http.Server.ConnContext: with it the gate knows what a client has really taken,
// and not only what the system has taken for it.
func KeepConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// paced is the writer of one answer.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	conn    net.Conn // nil: what the client has taken is not known
	pace    Pace
	request *http.Request // with the body that is paced
	body    *pacedBody    // nil: there is none
	once    sync.Once     // settles the body

	mu      sync.Mutex    // guards all below
	left    time.Duration // what may still be waited until Bytes more are taken
	base    int64         // what was taken when left was a whole Window
	seen    int64         // what was taken at the last look
	looked  bool          // base and seen are set
	written int64
	began   time.Time // of the piece that is being written; zero for none
	timer   *time.Timer
	stalls  func() // what to do when the client takes nothing; nil for nothing
}

func newPaced(w http.ResponseWriter, r *http.Request, pace Pace) *paced {
	if pace.Window == 0 {
		pace = defaultPace
	}
	p := &paced{ResponseWriter: w, control: http.NewResponseController(w), pace: pace, request: r, left: pace.Window}
	p.conn, _ = r.Context().Value(connKey{}).(net.Conn)
	if r.Body != nil && r.Body != http.NoBody {
		p.body = &pacedBody{ReadCloser: r.Body, control: p.control, pace: pace, left: pace.Window}
		again := *r // the server goes on to use the body of its own request
		again.Body = p.body
		p.request = &again
	}
	return p
}

// onStall is done, once, when the client takes nothing of its answer for a moment. A place is for
// work, and not for such a client.
func onStall(w http.ResponseWriter, do func()) {
	rec, ok := w.(*recorder)
	if !ok {
		return
	}
	p := rec.paced
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalls = do
}

// WriteHeader implements http.ResponseWriter.
func (p *paced) WriteHeader(code int) {
	p.settle()
	p.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (n int, err error) {
	p.settle()
	for {
		piece := b[n:min(len(b), n+pacePiece)]
		m, err := p.piece(func() (int64, error) { m, err := p.ResponseWriter.Write(piece); return int64(m), err })
		if n += int(m); err != nil || n == len(b) {
			return n, err
		}
	}
}

// ReadFrom implements io.ReaderFrom, so that kept files are copied by the kernel.
func (p *paced) ReadFrom(src io.Reader) (n int64, err error) {
	p.settle()
	whole, ok := src.(*io.LimitedReader)
	if !ok {
		whole = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	for whole.N > 0 {
		// the kernel looks through one of these
		piece := io.LimitedReader{R: whole.R, N: min(whole.N, pacePiece)}
		asked := piece.N
		m, err := p.piece(func() (int64, error) { return io.Copy(p.ResponseWriter, &piece) })
		n, whole.N = n+m, whole.N-m
		if err != nil || m < asked {
			return n, err
		}
	}
	return n, nil
}

// Unwrap lets http.ResponseController reach the connection.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// piece writes a piece. Only the time that this takes counts against the client.
func (p *paced) piece(write func() (int64, error)) (int64, error) {
	p.mu.Lock()
	p.began = time.Now()
	p.renew(p.left)
	if p.timer == nil {
		p.timer = time.AfterFunc(paceLook, p.look)
	} else {
		p.timer.Reset(paceLook)
	}
	p.mu.Unlock()
	n, err := write()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.written += n
	took := time.Since(p.began)
	p.left, p.began = p.left-took, time.Time{}
	if took >= paceLook {
		p.credit()
	}
	return n, err
}

// renew is called with the lock. Not every writer has deadlines.
func (p *paced) renew(left time.Duration) { _ = p.control.SetWriteDeadline(time.Now().Add(left)) }

// look sees how far a client is that has not taken a piece yet.
func (p *paced) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began.IsZero() {
		return
	}
	before, known := p.seen, p.looked
	if p.credit() {
		p.began = time.Now()
		p.renew(p.left)
	}
	if known && p.seen == before && p.stalls != nil {
		p.stalls()
		p.stalls = nil
	}
	next := p.pace.Window / 8
	if p.stalls != nil {
		next = paceLook
	}
	p.timer.Reset(next)
}

// credit gives a client that has taken enough a whole window anew, and reports whether it has. The
// caller holds the lock.
func (p *paced) credit() bool {
	p.seen = p.written
	if taken, ok := acknowledged(p.conn); ok {
		p.seen = taken
	}
	if !p.looked {
		p.looked, p.base = true, p.seen
	}
	if p.seen-p.base < p.pace.Bytes {
		return false
	}
	p.base, p.left = p.seen, p.pace.Window
	return true
}

// settle is done before an answer begins: the server would read the rest of the body first, for as
// long as that takes.
func (p *paced) settle() {
	if p.body == nil {
		return
	}
	p.once.Do(func() {
		if p.body.leftover(p.request) {
			return
		}
		p.Header().Set("Connection", "close")
	})
}

// end leaves a window for what the server still holds of the answer.
func (p *paced) end() {
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew(p.pace.Window)
}

// pacedBody is the body of one request.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pace    Pace
	left    time.Duration
	got     int64
	ended   bool
	broken  bool
}

// Read implements io.Reader.
func (b *pacedBody) Read(buf []byte) (int, error) {
	start := time.Now()
	_ = b.control.SetReadDeadline(start.Add(b.left))
	n, err := b.ReadCloser.Read(buf)
	if err == io.EOF {
		// the server listens for the end of the connection from now on
		_ = b.control.SetReadDeadline(time.Time{})
		b.ended = true
		return n, err
	}
	b.left -= time.Since(start)
	if b.got += int64(n); b.got >= b.pace.Bytes {
		b.got, b.left = 0, b.pace.Window
	}
	b.broken = b.broken || err != nil
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errStalled
	}
	return n, err
}

// leftover reads the rest of a small body, and reports whether that is all of it. A client that
// waits to be told to send it is not told.
func (b *pacedBody) leftover(r *http.Request) bool {
	if b.ended {
		return true
	}
	if b.broken || r.Header.Get("Expect") != "" || r.ContentLength > leftoverBytes {
		return false
	}
	b.left, b.pace = leftoverTime, Pace{Window: leftoverTime, Bytes: leftoverBytes + 1}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		b.left = leftoverRead
	}
	_, err := io.CopyN(io.Discard, b, leftoverBytes+1)
	return errors.Is(err, io.EOF)
}
