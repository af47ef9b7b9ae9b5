package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// warned are the warnings that begin with a key.
func warned(c *config.Config, key string) (found []string) {
	for _, w := range c.Warnings {
		if strings.HasPrefix(w, key+": ") {
			found = append(found, w)
		}
	}
	return found
}

// An admin listener that other machines can reach without a token is a finding, which names the
// risk and the remedy.
func TestAdminOnOtherAddresses(t *testing.T) {
	for listen, want := range map[string]bool{
		`127.0.0.1:4874`: false, `localhost:4874`: false, `'[::1]:4874'`: false, `""`: false,
		`0.0.0.0:4874`: true, `':4874'`: true, `192.0.2.7:4874`: true, `gate.example:4874`: true, `'[::]:4874'`: true,
	} {
		found := warned(load(t, with("admin: "+listen)), "admin")
		if (len(found) == 1) != want || want && !strings.Contains(found[0], "admin.tokenFile") {
			t.Errorf("%s: %q", listen, found)
		}
	}
	o := with("admin: {listen: '0.0.0.0:4874', tokenFile: token}")
	files := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if name == "token" {
			return []byte("s3cret\n"), nil
		}
		return files(name)
	}
	c := load(t, o)
	if found := warned(c, "admin"); len(found) != 0 || c.Admin != "0.0.0.0:4874" || c.AdminToken.Reveal() != "s3cret" {
		t.Errorf("%q %q %q", found, c.Admin, c.AdminToken.Reveal())
	}
}

// A file with secrets that every user of the machine can read is warned of, without its content.
func TestFilesThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1, 0o604: 1} {
		tokens, token := write("tokens", "ann tok-a\n", mode), write("token", "s3cret\n", mode)
		file := write("ecluse.yaml", "auth: {tokensFile: "+tokens+"}\nadmin: {tokenFile: "+token+"}\n"+
			"mounts: {npm: {public: 'https://r.example/', mirror: {url: 'https://m.example/', tokenFile: "+token+"}}}\n", 0o644)
		c := load(t, config.Options{File: file, Ecosystems: with("").Ecosystems})
		for _, key := range []string{"auth.tokensFile", "admin.tokenFile", "mounts.npm.mirror.tokenFile"} {
			if found := warned(c, key); len(found) != want || strings.Contains(strings.Join(found, " "), "s3cret") {
				t.Errorf("%s with mode %v: %q", key, mode, found)
			}
		}
	}
}

// Where the links lead is said by publicURL, or by proxies that are trusted.
func TestNoWarningOfLinks(t *testing.T) {
	for _, more := range []string{"publicURL: https://npm.example.com", "serve: {trustedProxies: [10.0.0.0/8, '2001:db8::/32']}"} {
		if w := load(t, with("listen: 0.0.0.0:4873\n"+more)).Warnings; len(w) != 0 {
			t.Errorf("%s: %q", more, w)
		}
	}
	for _, bad := range []string{"[proxy.example]", "[10.0.0.1]", "[10.0.0.1/8]"} {
		expect(t, with("serve: {trustedProxies: "+bad+"}"), "serve.trustedProxies", "write a range")
	}
}
