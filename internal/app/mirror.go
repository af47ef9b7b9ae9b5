package app

import (
	"context"
	"net/url"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	"github.com/ecluse-gate/ecluse/internal/npm"
	npmmirror "github.com/ecluse-gate/ecluse/internal/npm/mirrortarget"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	pypimirror "github.com/ecluse-gate/ecluse/internal/pypi/mirrortarget"
	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
	"github.com/ecluse-gate/ecluse/internal/upstream"
)

// lanes are the ways into the mirrors that are configured.
func (b *builder) lanes(npmGate, pypiGate *gate.Gate) (map[string]mirror.Lane, error) {
	out := map[string]mirror.Lane{}
	if m := b.Config.Mount(npm.Ecosystem).Mirror; npmGate != nil && m.URL != nil {
		t, err := b.client.Target(m.URL, upstream.Encoded)
		if err != nil {
			return nil, err
		}
		out[npm.Ecosystem] = mirror.Lane{Source: npmGate, Target: &npmmirror.Target{Target: t, Token: m.Token.Reveal()}}
	}
	if m := b.Config.Mount(pypi.Ecosystem).Mirror; pypiGate != nil && m.URL != nil {
		index := m.Index
		if index == nil {
			index = pypimirror.IndexOf(m.URL)
		}
		t, err := b.client.Target(m.URL, upstream.Encoded)
		if err != nil {
			return nil, err
		}
		pages, err := b.client.Target(index, upstream.Encoded)
		if err != nil {
			return nil, err
		}
		out[pypi.Ecosystem] = mirror.Lane{Source: pypiGate, Target: &pypimirror.Target{
			Target: t, Index: pages, Username: m.Username.Reveal(), Password: m.Password.Reveal(),
		}}
	}
	return out, nil
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
	for ecosystem, g := range a.gates {
		if _, ok := a.lanes[ecosystem]; ok {
			g.SetMirror(func(name, version, file string) {
				offer(mirror.Job{Ecosystem: ecosystem, Package: name, Version: version, File: file})
			})
		}
	}
	a.queue.status.Store(&status)
}

// Files are the mirror jobs of one version in an ecosystem's public listing. Python versions are
// compared as PEP 440 does: 2.0 is 2.0.0.
func (a *App) Files(ctx context.Context, ecosystem, name, version string) ([]mirror.Job, error) {
	g, meant := a.gates[ecosystem], func(v string) bool { return v == version }
	if ecosystem == pypi.Ecosystem {
		key := naming.EqualKey(version)
		meant = func(v string) bool { return naming.EqualKey(v) == key }
	}
	versions, err := g.FilesOf(ctx, name, meant)
	jobs := make([]mirror.Job, 0, len(versions))
	for _, v := range versions {
		jobs = append(jobs, mirror.Job{Ecosystem: ecosystem, Package: name, Version: v.Version, File: v.Artifacts[0].File})
	}
	return jobs, err
}
