package config_test

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/integrity"
)

func TestEgress(t *testing.T) {
	c := load(t, with("mounts: {npm: {public: 'https://10.1.2.3/'}}\negress: {allowInternal: [10.1.2.3, mirror.example], blockedRanges: [192.168.0.0/16]}"))
	if len(c.Egress.AllowInternal) != 2 || len(c.Egress.BlockedRanges) != 1 {
		t.Errorf("egress = %+v", c.Egress)
	}
	for _, url := range []string{
		"https://10.1.2.3/", "https://169.254.169.254/", "https://[fd00::1]/", "https://[::ffff:10.0.0.1]/", "https://2130706433/",
		"https://0x7f.1/", "https://127.1/", "https://[64:ff9b::a00:1]/",
	} {
		if p := problems(t, with("mounts: {npm: {public: '"+url+"'}}")); len(p) == 0 || p[0].Key != "mounts.npm.public" {
			t.Errorf("%s: problems %+v", url, p)
		}
	}
	load(t, with("mounts: {npm: {public: 'https://r.example/', private: 'https://10.1.2.3/'}}"))
	load(t, with("mounts: {npm: {public: 'http://127.0.0.1:4000/'}}"))
	problems(t, with("egress: {blockedRanges: [10.0.0.1/8]}"))
}

func TestIntegrityFloors(t *testing.T) {
	c := load(t, with("integrity: {minPublic: sha512, minTrusted: none}"))
	if c.Integrity.MinPublic != integrity.SHA512 || c.Integrity.MinTrusted != integrity.None {
		t.Errorf("floors = %+v", c.Integrity)
	}
	for _, bad := range []string{"minPublic: sha1", "minPublic: none", "minPublic: md5", "minTrusted: strong"} {
		if p := problems(t, with("integrity: {"+bad+"}")); len(p) != 1 {
			t.Errorf("%s: %+v", bad, p)
		}
	}
}
