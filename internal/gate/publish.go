package gate

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// PublishRequest is a package on its way to the publication target. The caller must have verified
// that every name inside equals Name.
type PublishRequest struct {
	Method string
	Name   string
	// Path is the escaped path below the target, or empty for the target's own address.
	Path   string
	Header http.Header
	Body   io.Reader
	Length int64
	// Authorization is the publisher's credential.
	Authorization string
}

// PublishRule is the rule that admits first-party names for publication and no others.
const PublishRule = "first-party"

// Publishes reports whether there is a publication target.
func (g *Gate) Publishes() bool { return g.opts.Publish != nil }

// MayPublish tells whether a name may be published here: an error is a *Denied. A public name would
// not resolve to what was published.
func (g *Gate) MayPublish(name string) error {
	if g.firstParty(name) {
		return nil
	}
	g.opts.Metrics.Decision(g.opts.Ecosystem.Name, "publish", "deny")
	return &Denied{What: name, Verdict: policy.Verdict{
		Rule: PublishRule, Reason: "only first-party names (mounts.*.firstParty) can be published through this gate",
	}}
}

// Publish sends a package to the publication target, once, and gives its answer as it came,
// whatever the status (tc-079). No cooldown concerns it (R8, R39). When no answer comes nobody
// knows what the target did, and the error says so: a *BadUpstream, since asking again is not what
// a client should do (tc-080, tc-081).
func (g *Gate) Publish(ctx context.Context, r PublishRequest) (*Artifact, error) {
	u := g.opts.Publish.URL()
	if r.Path != "" {
		var err error
		if u, err = g.opts.Publish.Under(r.Path); err != nil {
			return nil, err
		}
	}
	resp, err := g.opts.Publish.Write(ctx, upstream.Write{ //nolint:bodyclose // closed by whoever closes the artifact
		Method: r.Method, URL: u, Header: r.Header, Body: r.Body, Length: r.Length, Authorization: r.Authorization,
	})
	if err != nil {
		g.opts.Metrics.Decision(g.opts.Ecosystem.Name, "publish", "unavailable")
		return nil, &BadUpstream{Reason: fmt.Sprintf("the publication target did not answer (%v): it may or may not have accepted %s; "+
			"check before publishing again, the request was not repeated", err, r.Name)}
	}
	g.opts.Metrics.Decision(g.opts.Ecosystem.Name, "publish", "admit")
	return files.Relay(resp), nil
}
