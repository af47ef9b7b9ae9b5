package upstream

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// sentBody is the body of a write on its way: it may take as long as it wants while bytes move, and
// it remembers its own failure, which is not the target's.
type sentBody struct {
	ctx   context.Context //nolint:containedctx // the exchange that this body belongs to
	from  io.Reader
	limit *time.Timer
	err   atomic.Pointer[error]
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err == nil {
		b.limit.Reset(stallTimeout + answerTimeout)
		// the answer came early, and the exchange has ended while this was read
		if b.ctx.Err() != nil {
			b.limit.Stop()
		}
	} else if err != io.EOF {
		b.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (b *sentBody) Close() error {
	if c, ok := b.from.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (b *sentBody) failed() error {
	if err := b.err.Load(); err != nil {
		return fmt.Errorf("%w: %w", ErrBody, *err)
	}
	return nil
}
