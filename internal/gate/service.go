package gate

import (
	"context"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/payload"
	"github.com/ecluse-gate/ecluse/internal/policy"
	"github.com/ecluse-gate/ecluse/internal/refusal"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// maxService bounds what a service answers, unpacked.
const maxService = 8 << 20

// ServiceRequest asks a registry for something beside listings and files.
type ServiceRequest struct {
	// What names it in an error.
	What string
	// Path is the escaped path with its query below the registry's base.
	Path string
	// Body is a question that is sent with POST; nil asks with GET.
	Body []byte
	// Names may be those of packages, and are in Path or Body. One that resolves privately only is
	// refused.
	Names []string
	// Name is the package that it is about; empty for none. A package that resolves privately only
	// is asked for there, with the caller's credential.
	Name, Authorization string
}

// Service reads what a service of the public registry answers with status 200, under its cooldown.
// Its errors are those of Listing.
func (g *Gate) Service(ctx context.Context, r ServiceRequest) ([]byte, error) {
	body, err := g.service(ctx, r)
	g.countDecision("service", "metadata", err)
	return body, err
}

func (g *Gate) service(ctx context.Context, r ServiceRequest) ([]byte, error) {
	req := upstream.Request{Method: http.MethodGet, Kind: upstream.Metadata, Accept: "application/json", Body: r.Body}
	if r.Body != nil {
		req.Method = http.MethodPost
	}
	for _, name := range r.Names {
		if g.privateOnly(name) {
			return nil, &Denied{What: name, Verdict: policy.Verdict{
				Rule: PublishRule, Reason: "it is a private name, and the public registry is not asked for it",
			}}
		}
	}
	var err error
	if r.Name != "" && g.privateOnly(r.Name) {
		if g.opts.Private == nil {
			return nil, &NotFound{What: r.What}
		}
		if req.URL, err = g.opts.Private.Under(r.Path); err != nil {
			return nil, err
		}
		return g.askPrivate(ctx, r.What, req, r.Authorization)
	}
	if req.URL, err = g.opts.Public.Under(r.Path); err != nil {
		return nil, err
	}
	return g.askPublic(ctx, r.What, g.opts.Public, req)
}

func (g *Gate) askPublic(ctx context.Context, what string, from *upstream.Public, req upstream.Request) ([]byte, error) {
	side := g.side(from)
	resp, err := from.Do(ctx, req)
	if err != nil {
		return nil, side.Unsent(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, side.Status(resp, what)
	}
	body, err := payload.Read(resp.Response, maxService)
	if err != nil {
		return nil, refusal.FromPublic(err)
	}
	return body, nil
}

func (g *Gate) askPrivate(ctx context.Context, what string, req upstream.Request, authorization string) ([]byte, error) {
	resp, err := g.opts.Private.Do(ctx, req, authorization)
	if err != nil {
		return nil, refusal.FromPrivate(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if err := refusal.PrivateStatus(resp); err != nil {
			return nil, err
		}
		return nil, &NotFound{What: what}
	}
	body, err := payload.Read(resp, maxService)
	if err != nil {
		return nil, refusal.FromPrivate(err)
	}
	return body, nil
}

// Proof reads the attestations of a file where its listing says that they are, on the side that the
// file comes from. Its errors are those of Artifact.
func (g *Gate) Proof(ctx context.Context, r ArtifactRequest) ([]byte, error) {
	body, err := g.proof(ctx, r)
	g.countDecision("service", "metadata", err)
	return body, err
}

func (g *Gate) proof(ctx context.Context, r ArtifactRequest) ([]byte, error) {
	what := "the provenance of " + r.File
	req := upstream.Request{Method: http.MethodGet, Kind: upstream.Metadata, Accept: "application/json"}
	if g.opts.Private != nil {
		doc, err := g.privateListing(ctx, r.Name, r.Authorization)
		if err != nil {
			return nil, err
		}
		if address, listed := g.proofIn(doc, r.File); listed {
			u, ok := g.opts.Private.Owned(address)
			if !ok {
				return nil, &NotFound{What: what}
			}
			req.URL = u
			return g.askPrivate(ctx, what, req, r.Authorization)
		}
	}
	if g.privateOnly(r.Name) {
		return nil, &NotFound{What: what}
	}
	doc, err := g.find(ctx, r.Name, what, func(d registry.Document) bool { _, listed := g.proofIn(d, r.File); return listed })
	if err != nil {
		return nil, err
	}
	address, _ := g.proofIn(doc.Document, r.File)
	from, u, ok := g.owner(address)
	if !ok {
		return nil, &NotFound{What: what}
	}
	req.URL = u
	return g.askPublic(ctx, what, from, req)
}

// proofIn is where a document says that the attestations of a file are. Listed tells that it has
// the file at all.
func (g *Gate) proofIn(doc registry.Document, file string) (address string, listed bool) {
	if doc == nil {
		return "", false
	}
	i := doc.Lookup(file)
	if i < 0 {
		return "", false
	}
	return g.opts.Ecosystem.Proof(doc, i), true
}

// Shown reports whether a search may show a package, of which it knows the newest version: no rule
// refuses that, and only its age keeps it from being admitted if anything does.
func (g *Gate) Shown(name string, newest registry.Version) bool {
	if g.privateOnly(name) {
		return false
	}
	ok, _, at := g.Rules().Admits(time.Now(), policy.Subject{Package: g.pkg(name), Version: newest})
	return ok || !at.IsZero()
}

// AuditRequest asks what is known against versions of packages.
type AuditRequest struct {
	Versions map[string][]string
	// Path is where the public registry is asked, with a body of Body for the versions that it may
	// hear of.
	Path string
	Body func(versions map[string][]string) []byte
}

// Audit gives what the gate's own advisory data says where a source of it is configured, and else
// the answer of the public registry, which never hears of a name that resolves privately only
// (R106); nil where there is nothing to ask it. First-party names are in neither: what is said of
// such a name is about somebody else's package.
func (g *Gate) Audit(ctx context.Context, r AuditRequest) (found map[string][]registry.Finding, relayed []byte, err error) {
	if data := g.Rules().Advisories(); data != nil {
		found, err = g.findings(data, r.Versions)
		return found, nil, err
	}
	public := map[string][]string{}
	for name, versions := range r.Versions {
		if !g.privateOnly(name) {
			public[name] = versions
		}
	}
	if len(public) == 0 {
		return nil, nil, nil
	}
	relayed, err = g.Service(ctx, ServiceRequest{What: "the audit service", Path: r.Path, Body: r.Body(public)})
	return nil, relayed, err
}

func (g *Gate) findings(data policy.Advisories, versions map[string][]string) (map[string][]registry.Finding, error) {
	if !data.Loaded(g.opts.Ecosystem.Name) {
		return nil, &Unavailable{Wait: advisoryWait, Reason: "the advisory data is not loaded yet"}
	}
	found := map[string][]registry.Finding{}
	for name, asked := range versions {
		if g.firstParty(name) {
			continue
		}
		all, err := data.Findings(g.pkg(name), asked)
		if err != nil {
			return nil, &Unavailable{Wait: advisoryWait, Reason: "the advisory data about " + name + " is unreadable"}
		}
		if len(all) > 0 {
			found[name] = all
		}
	}
	return found, nil
}

// advisoryWait is when to ask again for advisories that are not there.
const advisoryWait = 30 * time.Second
