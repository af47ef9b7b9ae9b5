package gate

import (
	"context"
	"io"
	"reflect"
	"time"

	"github.com/ecluse-gate/ecluse/internal/files"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// distrusted gives the facts of a version anew after a file has proved that they are wrong: its
// listing is read whole, since a 304 would confirm the same again. It reports whether they differ
// now, so that the file is worth another request.
func (g *Gate) distrusted(ctx context.Context, r ArtifactRequest, key string, old registry.Version) (registry.Version, bool) {
	if !g.reread(ctx, r.Name, key) {
		return old, false
	}
	facts, err := g.admitted(ctx, r, key)
	if err != nil || len(facts.Artifacts) == 0 || len(old.Artifacts) == 0 {
		return old, false
	}
	return facts, !reflect.DeepEqual(facts.Artifacts[0].Digests, old.Artifacts[0].Digests)
}

// reread reads a listing without validators and forgets the facts of one entry.
func (g *Gate) reread(ctx context.Context, name, key string) bool {
	if !g.documents.Reread(ctx, name) {
		return false
	}
	g.versions.Delete(versionKey{name, key})
	return true
}

// rereadTime bounds what the end of a transfer waits for a listing.
const rereadTime = 30 * time.Second

// watched lets the end of a file that comes from the upstream judge its listing: too late for this
// request, in time for the next. A kept file is
// what its name says, and is left as it is for the kernel to send.
func (g *Gate) watched(ctx context.Context, a *Artifact, name, key string) *Artifact {
	if _, kept := a.Body.(io.Seeker); kept || a.Body == nil {
		return a
	}
	a.Body = files.Judged(a.Body, func(err error) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTime)
		defer cancel()
		g.reread(ctx, name, key)
		return err
	})
	return a
}
