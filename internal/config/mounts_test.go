package config_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
)

// A mount that is off needs nothing: npm is not asked, its files are not read, and what contradicts
// the rest does not matter. What is misspelt is refused all the same, and so is a gate that serves
// nothing.
func TestMountsCanBeOff(t *testing.T) {
	o := with("mounts: {npm: {enabled: false, mirror: {tokenFile: missing}, publish: {url: 'https://r.example'}}}")
	o.Tools = tool(func(context.Context) (string, error) {
		t.Error("npm was asked although its mount is off")
		return "", errors.New("npm is not installed")
	})
	if c := load(t, o); c.Mount("npm").Enabled || c.Mount("npm").Public != nil || !c.Mount("pypi").Enabled {
		t.Errorf("npm %+v, pypi %+v", c.Mount("npm"), c.Mount("pypi"))
	}
	if c := load(t, with("", "ECLUSE_MOUNTS__PYPI__ENABLED=false")); !c.Mount("npm").Enabled || c.Mount("pypi").Enabled {
		t.Errorf("npm %+v, pypi %+v", c.Mount("npm"), c.Mount("pypi"))
	}
	expect(t, with("mounts: {npm: {enabled: no}}"), "mounts.npm.enabled", "true or false")
	expect(t, with("mounts: {npm: {enabled: false, private: 'ftp://r.example'}}"), "mounts.npm.private", "must begin with")
	expect(t, with("mounts: {npm: {enabled: false}, pypi: {enabled: false}}"), "mounts.npm.enabled", "every mount is switched off")
	expect(t, with("mounts: {npm: {files: ['https://r.example']}}"), "mounts.npm.files", "unknown key")
	expect(t, with("mounts: {pypi: {mirror: {tokenFile: x}}}"), "mounts.pypi.mirror.tokenFile", "unknown key")
}

// An ecosystem that the product does not have gets the keys that every mount has as soon as it is
// handed in.
func TestToyMount(t *testing.T) {
	o := with("mounts: {npm: {enabled: false}, pypi: {enabled: false}, toy: {public: 'https://toys.example', firstParty: ['toy:ours']}}\n" +
		"rules: {ban: {type: DenyByIdentity, packages: ['toy:Blocks'], ecosystems: [toy]}}")
	o.Ecosystems = append(o.Ecosystems, ecosystemtest.Toy())
	c := load(t, o)
	if m := c.Mount("toy"); !m.Enabled || m.Public.Host != "toys.example" || !m.FirstParty[0].MatchPackage("toy", "OURS") || len(c.Rules) != 2 {
		t.Errorf("%+v, rules %+v", m, c.Rules)
	}
	expect(t, with("mounts: {toy: {enabled: false}}"), "mounts.toy.enabled", "unknown key")
}
