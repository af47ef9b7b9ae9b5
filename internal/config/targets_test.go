package config_test

import (
	"testing"
)

func TestTargets(t *testing.T) {
	o := with("mounts: {npm: {firstParty: ['@acme/*'], mirror: {url: 'https://r.example/npm', tokenFile: token}, publish: {url: 'https://r.example/own'}}," +
		" pypi: {mirror: {url: 'https://r.example/legacy/', usernameFile: user, passwordFile: pass}}}\nqueue: {url: 'postgres://me@db.example/jobs?sslmode=require'}")
	files := o.ReadFile
	o.ReadFile = func(name string) ([]byte, error) {
		if text, ok := map[string]string{"token": "tok-a\n", "user": "me", "pass": "word"}[name]; ok {
			return []byte(text), nil
		}
		return files(name)
	}
	c := load(t, o)
	if c.Mount("npm").Mirror.Token.Reveal() != "tok-a" || c.Mount("pypi").Mirror.Username.Reveal() != "me" || c.Mount("pypi").Mirror.Password.Reveal() != "word" {
		t.Errorf("credentials are not those of the files")
	}
	if c.Queue.URL != "postgres://me@db.example/jobs?sslmode=require" || c.Mount("npm").Publish.URL.Path != "/own" {
		t.Errorf("queue %q, publish %v", c.Queue.URL, c.Mount("npm").Publish.URL)
	}
}

func TestTargetsThatContradict(t *testing.T) {
	for _, c := range []struct{ file, key, want string }{
		{"mounts: {npm: {mirror: {url: 'http://r.example'}}}", "mounts.npm.mirror.url", "plain http"},
		{"mounts: {npm: {mirror: {url: 'https://u:p@r.example'}}}", "mounts.npm.mirror.url", "password"},
		{"mounts: {npm: {public: 'https://pub.example/', mirror: {url: 'https://pub.example'}}}", "mounts.npm.mirror.url", "nothing is written"},
		{"mounts: {npm: {mirror: {tokenFile: x}}}", "mounts.npm.mirror.tokenFile", "has no effect without"},
		{"mounts: {npm: {publish: {url: 'https://r.example'}}}", "mounts.npm.publish.url", "firstParty"},
		{"mounts: {pypi: {publish: {url: 'https://r.example'}}}", "mounts.pypi.publish.url", "firstParty"},
		{"mounts: {pypi: {mirror: {url: 'https://r.example', usernameFile: u}}}", "mounts.pypi.mirror.usernameFile", "passwordFile"},
		{"queue: {url: 'postgres://me:secret@db.example/jobs'}", "queue.url", "PGPASSWORD"},
		{"queue: {url: 'postgres://db.example/jobs?password=secret'}", "queue.url", "PGPASSWORD"},
		{"queue: {url: 'mysql://db.example/jobs'}", "queue.url", "postgres://"},
		{"queue: {url: 'postgres://db.example'}", "queue.url", "needs a host and a database"},
	} {
		t.Run(c.file, func(t *testing.T) {
			o := with(c.file)
			files := o.ReadFile
			o.ReadFile = func(name string) ([]byte, error) {
				if len(name) == 1 {
					return []byte("secret"), nil
				}
				return files(name)
			}
			expect(t, o, c.key, c.want)
		})
	}
}
