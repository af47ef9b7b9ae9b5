package config_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/config"
)

// The proxy of an upstream is what the environment says, or egress.proxy; loopback addresses and
// what NO_PROXY names are reached directly.
func TestProxies(t *testing.T) {
	for _, c := range []struct {
		name, yaml  string
		environ     []string
		https, http string // of https://r.example and http://r.example
	}{
		{"none", "", nil, "", ""},
		{"both", "", []string{"HTTPS_PROXY=http://s.example:3128", "HTTP_PROXY=http://p.example:3128"}, "http://s.example:3128", "http://p.example:3128"},
		{"small letters", "", []string{"https_proxy=s.example:3128"}, "http://s.example:3128", ""},
		{"a password", "", []string{"HTTPS_PROXY=http://u:hunter2@s.example:3128"}, "http://u:hunter2@s.example:3128", ""},
		{"socks", "", []string{"HTTPS_PROXY=socks5://s.example"}, "socks5://s.example", ""},
		{"the key", "egress: {proxy: 'http://k.example:3128'}", []string{"HTTPS_PROXY=http://s.example:3128"}, "http://k.example:3128", "http://k.example:3128"},
		{"not for this one", "egress: {proxy: 'http://k.example:3128'}", []string{"NO_PROXY=.example"}, "", ""},
		{"for nothing", "", []string{"HTTPS_PROXY=http://s.example:3128", "no_proxy=*"}, "", ""},
	} {
		o := with(c.yaml)
		o.Environ = c.environ
		cfg := load(t, o)
		for address, want := range map[string]string{"https://r.example/": c.https, "http://r.example/": c.http, "https://127.0.0.1/": "", "https://localhost/": ""} {
			got := ""
			if f := cfg.Egress.Proxies.Func(); f != nil {
				u, _ := url.Parse(address)
				via, err := f(u)
				if err != nil {
					t.Fatal(err)
				}
				if via != nil {
					got = via.String()
				}
			}
			if got != want {
				t.Errorf("%s: %s through %q, want %q", c.name, address, got, want)
			}
		}
		for _, s := range cfg.Settings() {
			if strings.Contains(s.Value, "hunter2") {
				t.Errorf("%s shows a password", s.Key)
			}
			if s.Key == "egress.proxy" && c.name == "a password" && (s.Value != "http://s.example:3128" || s.Source != "HTTPS_PROXY" || s.Layer != config.FromEnv) {
				t.Errorf("%+v", s)
			}
		}
	}
	for _, environ := range []string{"HTTPS_PROXY=ftp://u:hunter2@s.example", "http_proxy=http://", "HTTPS_PROXY=http://u:hunter2@s.example:x"} {
		o := with("")
		o.Environ = []string{environ}
		p := problems(t, o)
		if len(p) != 1 || !strings.Contains(p[0].Text, "not the address of a proxy") || strings.Contains(p[0].Text, "hunter2") {
			t.Errorf("%s: %+v", environ, p)
		}
	}
	expect(t, with("egress: {proxy: 'http://u:hunter2@k.example'}"), "egress.proxy", "user name or password")
}
