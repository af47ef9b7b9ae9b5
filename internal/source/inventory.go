package source

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/search/wire"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/progress"
	"github.com/ecluse-gate/ecluse/recovery"
)

// Limits of one inventory (S62). A sequence that also reads the source may make one request more.
const (
	maxPages    = 200
	maxRequests = 200
	maxRecords  = plan.MaxFiles
)

// inventory lists all files of the source within a sequence: a 429 on any page may use its one
// delay, and the pages that were read are kept (S60-S63).
func (s *session) inventory(ctx context.Context, seq *recovery.Sequence, stage progress.Stage) ([]wire.File, error) {
	s.report.Enter(stage)
	defer s.noted(seq)
	first, err := s.client.Service().InventoryURL(s.name)
	if err != nil {
		return nil, err
	}
	trail, err := search.NewTrail(first)
	if err != nil {
		return nil, err
	}
	var all []wire.File
	link := ""
	for range maxPages {
		page, err := read(ctx, seq, func(ctx context.Context, bounds search.Bounds) (*search.FilePage, string, error) {
			page, err := s.client.ListFiles(ctx, s.name, link, bounds)
			if err != nil {
				return nil, "", err
			}
			return page, page.RequestID, nil
		})
		if err != nil {
			return nil, listing(seq, err)
		}
		if all = append(all, page.Files...); len(all) > maxRecords {
			return nil, fail(codeListLimit, "the service lists more than 200 files, the most that a source may have")
		}
		if page.Next == "" {
			return all, nil
		}
		if err := trail.Follow(page.Next); err != nil {
			return nil, err
		}
		link = page.Next
	}
	return nil, fail(codeListLimit, "the list of files has more than 200 pages")
}

// listing names the ends of a list that no throttling brought about.
func listing(seq *recovery.Sequence, err error) error {
	if _, throttled := errors.AsType[*recovery.Failure](err); throttled {
		return err
	}
	stop, stopped := errors.AsType[*recovery.Stop](err)
	s, sent := errors.AsType[*search.Error](err)
	switch {
	case stopped && stop.Code == recovery.CodeExhausted:
		return fail(codeListLimit, "the list of files needs more than 200 requests")
	case stopped && stop.Code == recovery.CodeBudget, sent && seq.Remaining() == 0 && s.Status == 0,
		sent && s.Code == search.CodeDeadlineExceeded && seq.Remaining() == 0:
		return fail(codeListTimeout, "the list of files was not complete within 60 seconds")
	}
	return err
}

// inventoryDigest is over the fields of S64, sorted by name and id.
func inventoryDigest(files []wire.File) string {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b wire.File) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	fields := make([]map[string]any, 0, len(sorted))
	for _, f := range sorted {
		fields = append(fields, f.Fields)
	}
	return plan.Digest(fields)
}

// matches says that a record on the server is the approved file: name, size, no error, and every
// marker (S65).
func matches(p *plan.Plan, f plan.File, on wire.File) bool {
	return on.Name == f.Path && on.Bytes == f.Size && !on.Failed && marked(p, f, on)
}

func marked(p *plan.Plan, f plan.File, on wire.File) bool {
	for key, value := range p.Markers(f) {
		if got, ok := on.Metadata[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// contradicts says that an answer shows something else than what was sent, as opposed to showing
// less of it (S77).
func contradicts(p *plan.Plan, f plan.File, on wire.File) bool {
	if on.Failed || on.Name != "" && on.Name != f.Path || on.Bytes >= 0 && on.Bytes != f.Size {
		return true
	}
	for key, value := range p.Markers(f) {
		if got, ok := on.Metadata[key]; ok && got != value {
			return true
		}
	}
	return false
}
