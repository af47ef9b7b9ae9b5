package app

import (
	"maps"
	"sync/atomic"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/edge"
)

// keyring holds the gate's own credentials, which a reload replaces. The map is never changed.
type keyring struct {
	own atomic.Pointer[map[string]config.Own] // by ecosystem
}

func newKeyring(cfg *config.Config) *keyring {
	k, own := &keyring{}, map[string]config.Own{}
	for _, m := range cfg.Mounts {
		own[m.Ecosystem] = cfg.Own(m)
	}
	k.own.Store(&own)
	return k
}

// follow takes over the credentials of a configuration that was read anew, for the registries that
// the gate was started with.
func (k *keyring) follow(started, cfg *config.Config) {
	own := maps.Clone(*k.own.Load())
	for _, m := range started.Mounts {
		own[m.Ecosystem] = cfg.OwnAfter(m, own[m.Ecosystem])
	}
	k.own.Store(&own)
}

// access is what the server judges requests by.
func (k *keyring) access(cfg *config.Config) edge.Access {
	return edge.Access{Tokens: cfg.Auth.Tokens, HelpMessage: cfg.Serve.HelpMessage, Own: *k.own.Load()}
}

// private is the credential for the private registry of an ecosystem as it is now.
func (k *keyring) private(ecosystem string) string { return (*k.own.Load())[ecosystem].Private }

// mirror gives the credential for the mirror of an ecosystem as it is now.
func (k *keyring) mirror(ecosystem string) func() string {
	return func() string { return (*k.own.Load())[ecosystem].Mirror }
}
