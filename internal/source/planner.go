package source

import (
	"context"
	"strconv"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
)

// Plan turns a request document into an unapproved envelope, with reads only. The envelope is nil
// when there is nothing to approve: the source stands exactly as requested with all its files
// (reused), or the request is blocked. Everything local is checked before a token is asked for.
func (t *Tool) Plan(ctx context.Context, request []byte) ([]byte, *Outcome) {
	s := t.begin(ctx, "plan")
	envelope, status, err := s.plan(ctx, request)
	if err != nil {
		s.failed(err)
	}
	return envelope, s.finish(status, false)
}

func (s *session) plan(ctx context.Context, data []byte) ([]byte, string, error) {
	r, err := plan.ParseRequest(data)
	if err != nil {
		return nil, "", err
	}
	if err := s.tool.allowed(r.Endpoint); err != nil {
		return nil, "", err
	}
	p, err := measure(ctx, r)
	if err != nil {
		return nil, "", err
	}
	// too large to be kept: better said before anything is asked
	if _, err := plan.New(p); err != nil {
		return nil, "", err
	}
	service, _, err := plan.Address(p.Endpoint, p.APIVersion, p.Source.Name)
	if err != nil {
		return nil, "", err
	}
	if err := s.connect(service, p.Source.Name); err != nil {
		return nil, "", err
	}
	if err := s.client.Authenticate(ctx); err != nil {
		return nil, "", err
	}
	status, err := s.compare(ctx, r, p)
	if err != nil || status == StatusReused {
		return nil, status, err
	}
	envelope, err := plan.New(p)
	s.out.Fingerprint = plan.Digest(p)
	return envelope, status, err
}

// measure reads the local files twice over: once for their digests, and at the end for what changed
// meanwhile (S70).
func measure(ctx context.Context, r *plan.Request) (*plan.Plan, error) {
	root, err := corpus.OpenRoot(r.LocalRoot)
	if err != nil {
		return nil, err
	}
	limit, _ := plan.FileLimit(r.ServiceTier)
	records := make([]plan.File, 0, len(r.Paths))
	for _, path := range r.Paths {
		f, err := root.Scan(ctx, path, limit)
		if err != nil {
			return nil, err
		}
		records = append(records, plan.File{
			Path: f.Path, Size: f.Size, ModTime: strconv.FormatInt(f.ModTime, 10), SHA256: f.SHA256,
			MediaType: plan.MediaType(f.Path), Metadata: r.Metadata[f.Path],
		})
	}
	for _, f := range records {
		if err := root.Stat(f.Local()); err != nil {
			return nil, err
		}
	}
	_, url, err := plan.Address(r.Endpoint, r.APIVersion, r.Name)
	return &plan.Plan{
		Kind: plan.KindFile, Action: plan.ActionCreate, Endpoint: r.Endpoint, APIVersion: r.APIVersion, ServiceTier: r.ServiceTier,
		Owner: r.Owner, Network: r.Network, RBAC: r.RBAC, InventoryDigest: inventoryDigest(nil),
		Source: plan.Source{Name: r.Name, URL: url, Definition: r.Definition()},
		Files:  plan.Files{LocalRoot: r.LocalRoot, Digest: plan.Digest(records), Records: records},
	}, err
}

// compare looks at the service and says what the plan has to be.
func (s *session) compare(ctx context.Context, r *plan.Request, p *plan.Plan) (string, error) {
	now, err := s.getSource(ctx, nil) // no recovery in planning (S38)
	if err != nil {
		return "", err
	}
	if now.absent {
		return StatusPlanned, nil
	}
	same := sameDefinition(now.definition, p.Source.Definition)
	if !same && !r.AllowUpdate {
		return "", fail(codeDrift, "a knowledge source of this name exists with another definition")
	}
	b := s.newBatch(p, "")
	// the exception: verification of an exact reuse
	files, err := s.inventory(ctx, s.newSequence(maxRequests), progress.Inventory)
	if err == nil {
		err = b.observe(files, codeDuplicateRecord)
	}
	if err != nil {
		return "", err
	}
	if room, err := s.room(ctx); err != nil {
		return "", err
	} else if room != nil && int64(len(p.Files.Records)) > room.MaxFiles {
		return "", fail(codeQuota, "the source takes at most "+strconv.FormatInt(room.MaxFiles, 10)+" files")
	}
	b.listed = true
	b.describe(nil)
	s.out.WritesPerformed = []Write{}
	if !b.complete() {
		return "", fail(codeReusedUpload, "the knowledge source exists without all requested files; an existing source accepts no uploads")
	}
	s.out.ResourcesRemaining.Reused = append([]string{p.Source.Name}, s.out.ResourcesRemaining.Reused...)
	if same {
		return StatusReused, nil
	}
	p.Action, p.Source.ETag, p.InventoryDigest = plan.ActionUpdate, &now.etag, inventoryDigest(files)
	return StatusPlanned, nil
}

// room is what the service says a source may hold (S78), nil where it does not say.
func (s *session) room(ctx context.Context) (*wire.Capacity, error) {
	status, err := s.client.GetSourceStatus(ctx, s.name, search.Bounds{})
	if err != nil || status == nil {
		return nil, err
	}
	return status.Capacity, nil
}
