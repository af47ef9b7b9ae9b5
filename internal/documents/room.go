package documents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/payload"
	"github.com/ecluse-gate/ecluse/internal/quota"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

const (
	// exchange is what a read takes beside its body.
	exchange = 64 << 10
	// busyWait is what a client hears that found no room in time.
	busyWait = 5 * time.Second
)

// source is an answer as an ecosystem reads it. The share has room for the body and for one
// rendering of it; the caller gives it back, and whoever goes on with the document keeps it.
func (d *Documents) source(ctx context.Context, resp *http.Response) (registry.Source, *quota.Share, error) {
	share, err := d.opts.Room.Take(ctx, exchange)
	if err != nil {
		return registry.Source{}, nil, crowded(err)
	}
	body, err := payload.ReadWithin(resp, d.opts.MaxDocument, func(n int64) error {
		if n < 0 {
			share.Shrink(-n)
			return nil
		}
		return share.Grow(ctx, n)
	})
	if err == nil {
		err = share.Grow(ctx, int64(len(body)))
	}
	if errors.Is(err, registry.ErrTooLarge) {
		err = fmt.Errorf("%w; the setting cache.maxDocument of the gate allows more", err)
	}
	if err != nil {
		share.Release()
		return registry.Source{}, nil, crowded(err)
	}
	src := registry.Source{Body: body, ContentType: resp.Header.Get("Content-Type")}
	if resp.Request != nil {
		src.URL = resp.Request.URL
	}
	return src, share, nil
}

// crowded types the error of a read for which there was no room.
func crowded(err error) error {
	if !errors.Is(err, quota.ErrBusy) {
		return err
	}
	return &refusal.Unavailable{Wait: busyWait, Crowded: true, Reason: "too many listings are being read at once (cache.maxFetching)"}
}

// revival is a share for a document that is read from its kept form, whose body has n bytes.
func (d *Documents) revival(ctx context.Context, n int64) (*quota.Share, error) {
	share, err := d.opts.Room.Take(ctx, 2*n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, err)
	}
	return share, nil
}
