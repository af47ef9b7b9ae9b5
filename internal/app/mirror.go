package app

import (
	"context"
	"net/url"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/overlap"
	"github.com/ecluse-gate/ecluse/internal/serving"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// lanes are the ways into the mirrors that are configured.
func (b *builder) lanes(mounts serving.Mounts) (map[string]mirror.Lane, error) {
	out := map[string]mirror.Lane{}
	for _, m := range mounts {
		c := b.Config.Mount(m.Name).Mirror
		if m.Gate == nil || c.URL == nil {
			continue
		}
		t, err := m.Mirror(serving.Registry{
			URL: c.URL, Index: c.Index, Authorization: b.own.mirror(m.Name),
			Open: func(u *url.URL) (*upstream.Target, error) { return b.client.Target(u, upstream.Encoded) },
		})
		if err != nil {
			return nil, err
		}
		out[m.Name] = mirror.Lane{Source: m.Gate, Target: noted{t, b.names}}
	}
	return out, nil
}

// noted is a mirror of which it is written down what it copies, before it does: a write whose
// answer is lost is found there later, and must not look like somebody else's.
type noted struct {
	mirror.Target
	names *overlap.Book
}

// Put implements mirror.Target.
func (n noted) Put(ctx context.Context, j mirror.Job, c *gate.Copy, f *mirror.Spooled) error {
	n.names.Copy(j.Ecosystem, j.Package, j.File)
	return n.Target.Put(ctx, j, c, f)
}

// publishTarget is where a mount publishes; nil means nowhere.
func (b *builder) publishTarget(u *url.URL) (*upstream.Target, error) {
	if u == nil {
		return nil, nil
	}
	return b.client.Target(u, upstream.Encoded)
}

// Lanes are the ways into the mirrors, by ecosystem; none means that nothing is mirrored.
func (a *App) Lanes() map[string]mirror.Lane { return a.lanes }

// queue leads to the mirror's queue, once there is one.
type queue struct {
	status atomic.Pointer[func(context.Context) (mirror.Status, error)]
}

// read is the queue's status, for the admin API.
func (q *queue) read(ctx context.Context) (st mirror.Status, enabled bool, err error) {
	status := q.status.Load()
	if status == nil {
		return mirror.Status{}, false, nil
	}
	st, err = (*status)(ctx)
	return st, true, err
}

// SetMirror connects the mounts that have a mirror to its queue: offers get what clients take, and
// the status is shown.
func (a *App) SetMirror(offer func(mirror.Job), status func(context.Context) (mirror.Status, error)) {
	for _, m := range a.mounts {
		if _, ok := a.lanes[m.Name]; ok {
			m.Gate.SetMirror(func(name, version, file string) {
				offer(mirror.Job{Ecosystem: m.Name, Package: name, Version: version, File: file})
			})
		}
	}
	a.queue.status.Store(&status)
}

// Files are the mirror jobs of one version in an ecosystem's public listing. Versions that the
// ecosystem calls equal are one. The ecosystem's mount must be on.
func (a *App) Files(ctx context.Context, ecosystem, name, version string) ([]mirror.Job, error) {
	m, meant := a.mounts.Named(ecosystem), func(v string) bool { return v == version }
	if m.VersionKey != nil {
		key := m.VersionKey(version)
		meant = func(v string) bool { return m.VersionKey(v) == key }
	}
	versions, err := m.Gate.FilesOf(ctx, name, meant)
	jobs := make([]mirror.Job, 0, len(versions))
	for _, v := range versions {
		jobs = append(jobs, mirror.Job{Ecosystem: ecosystem, Package: name, Version: v.Version, File: v.Artifacts[0].File})
	}
	return jobs, err
}
