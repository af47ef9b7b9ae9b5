package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/config"
)

const advisoryRule = "\nrules: {adv: {type: DenyIfAdvisory}}"

// The source is a URL, a zip or a folder; one that cannot be meant is refused at the start.
func TestAdvisories(t *testing.T) {
	for _, c := range []struct {
		file    string
		want    config.Advisories
		problem string
	}{
		{"", config.Advisories{Interval: time.Hour}, ""},
		{"advisories: {source: 'https://osv.example/exports'}" + advisoryRule, config.Advisories{Source: "https://osv.example/exports", Interval: time.Hour}, ""},
		{"advisories: {source: 'https://osv.example/{ecosystem}.zip', interval: 10m}" + advisoryRule, config.Advisories{Source: "https://osv.example/{ecosystem}.zip", Interval: 10 * time.Minute}, ""},
		{"advisories: {source: 'http://127.0.0.1:9/x.zip'}" + advisoryRule, config.Advisories{Source: "http://127.0.0.1:9/x.zip", Interval: time.Hour}, ""},
		{"advisories: {source: ./osv}" + advisoryRule, config.Advisories{Source: "./osv", Interval: time.Hour}, ""},
		{"advisories: {source: 'http://osv.example'}" + advisoryRule, config.Advisories{}, "plain http"},
		{"advisories: {source: 'https://user:secret@osv.example'}" + advisoryRule, config.Advisories{}, "must not contain a user name or password"},
		{"advisories: {source: 'ftp://osv.example'}" + advisoryRule, config.Advisories{}, "must begin with https://"},
		{"advisories: {source: 'https://osv.example?x=1'}" + advisoryRule, config.Advisories{}, "must not contain a query"},
		{"advisories: {source: \"a\\nb\"}" + advisoryRule, config.Advisories{}, "neither a URL nor a path"},
		{"advisories: {source: [a, b]}" + advisoryRule, config.Advisories{}, "one value, not a list"},
		{"advisories: {source: ./osv, interval: 59s}" + advisoryRule, config.Advisories{}, "too short"},
		{"advisories: {source: ./osv, interval: soon}" + advisoryRule, config.Advisories{}, "not a duration"},
		{"advisories: {source: ./osv, url: x}" + advisoryRule, config.Advisories{}, "unknown key"},
		{"rules: {adv: {type: DenyIfAdvisory, enabled: false}}", config.Advisories{Interval: time.Hour}, ""},
	} {
		if c.problem == "" {
			if cfg := load(t, with(c.file)); cfg.Advisories != c.want || len(cfg.Warnings) > 0 {
				t.Errorf("%s: %+v, warnings %q", c.file, cfg.Advisories, cfg.Warnings)
			}
			continue
		}
		p := problems(t, with(c.file))
		if len(p) != 1 || !strings.Contains(p[0].Text, c.problem) || strings.Contains(p[0].Text, "secret") {
			t.Errorf("%s: problems %+v, want one with %q", c.file, p, c.problem)
		}
	}
}

// A rule that could never know anything refuses the start when it would refuse everything, and is
// pointed out when it would do nothing.
func TestAdvisoryRulesNeedASource(t *testing.T) {
	p := problems(t, with("rules: {adv: {type: DenyIfAdvisory, onUnavailable: deny}}"))
	if len(p) != 1 || p[0].Key != "rules.adv" || !strings.Contains(p[0].Text, "advisories.source is not set") {
		t.Errorf("problems %+v", p)
	}
	for file, want := range map[string]string{
		"rules: {adv: {type: DenyIfAdvisory, onUnavailable: skip}}": "rules.adv: needs advisories",
		"rules: {fix: {type: AllowIfRemediates}}":                   "rules.fix: needs advisories",
		"advisories: {source: ./osv}":                               "no rule uses advisories",
	} {
		if w := load(t, with(file)).Warnings; len(w) != 1 || !strings.Contains(w[0], want) {
			t.Errorf("%s: warnings %q", file, w)
		}
	}
}
