// Package service is the emulated search service itself: what it holds and what it truthfully
// answers. It knows no script, no record and no connection; those are the emulator's.
package service

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options configure a service; see emulator.Options for their meaning. Now is required.
type Options struct {
	Tier         string
	Token        string
	MaxFiles     int
	MaxFileBytes int64
	BaseURL      string
	Now          func() time.Time
}

// Service is the state of one service. Safe for concurrent use.
type Service struct {
	options Options
	limits  limits

	mu    sync.Mutex // guards everything below
	store store
	tags  int // counter behind ETags
}

// Answer is a whole answer in memory; answers of this service are small.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// New makes an empty service. It fails on an unknown tier.
func New(options Options) (*Service, error) {
	if options.Tier == "" {
		options.Tier = "basic"
	}
	found, ok := tiers()[strings.ToLower(options.Tier)]
	if !ok {
		return nil, fmt.Errorf("unknown tier %q: use free, basic, s1, s2, s3, s3hd, l1, l2 or serverless", options.Tier)
	}
	if options.MaxFileBytes > 0 {
		found.fileBytes = min(found.fileBytes, options.MaxFileBytes)
	}
	return &Service{options: options, limits: found, store: newStore()}, nil
}

// Reset empties the service.
func (v *Service) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.store = newStore()
}

// Base is what links begin with: the configured base, or the scheme and host of the request.
func (v *Service) Base(r *http.Request) string {
	if v.options.BaseURL != "" {
		return v.options.BaseURL
	}
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func (v *Service) now() time.Time { return v.options.Now().UTC() }
