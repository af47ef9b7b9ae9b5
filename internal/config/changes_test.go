package config_test

import (
	"slices"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// Every key but those that a reload takes over is named when it differs; so is one whose file says
// something else.
func TestNeedRestart(t *testing.T) {
	secret := "one"
	read := func(yaml string) *config.Config {
		o := with(yaml)
		files := o.ReadFile
		o.ReadFile = func(name string) ([]byte, error) {
			switch name {
			case "token":
				return []byte(secret), nil
			case "tokens":
				return []byte("ann of-" + secret), nil
			}
			return files(name)
		}
		return load(t, o)
	}
	const base = "auth: {tokensFile: tokens}\nadmin: {tokenFile: token}\n" +
		"mounts: {npm: {public: 'https://r.example/', mirror: {url: 'https://m.example/', tokenFile: token}}}\n"
	before := read(base)
	if keys := before.NeedRestart(read(base)); len(keys) != 0 {
		t.Errorf("without a change: %v", keys)
	}
	if keys := before.NeedRestart(read(base + "serve: {helpMessage: ask}\nrules: {more: {type: DenyByIdentity, packages: [npm:a]}}\n" +
		"advisories: {source: /osv, interval: 2h}\n")); len(keys) != 0 {
		t.Errorf("what a reload takes over: %v", keys)
	}
	secret = "two"
	if keys := before.NeedRestart(read(base)); len(keys) != 0 { // R106: credentials are taken over
		t.Errorf("other files: %v", keys)
	}
	secret = "one"
	after := read(base + "listen: 127.0.0.1:1\ncache: {ttl: 1s}\nbudget: {r.example: {rate: 2}}\n")
	want := []string{"listen", "cache.ttl", "budget.r.example.rate"}
	if keys := before.NeedRestart(after); !slices.Equal(slices.DeleteFunc(keys, func(k string) bool { return k == "publicURL" }), want) {
		t.Errorf("%v, want %v", keys, want)
	}
	if keys := after.NeedRestart(before); !slices.Equal(slices.DeleteFunc(keys, func(k string) bool { return k == "publicURL" }), want) {
		t.Errorf("back: %v, want %v", keys, want)
	}
}
