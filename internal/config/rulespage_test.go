package config_test

import (
	"os"
	"regexp"
	"testing"
)

// The example of docs/rules.md is a configuration that starts, without a warning.
func TestRulesPageExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("no example")
	}
	cfg := load(t, with(string(example[1])))
	if len(cfg.Rules) != 8 || len(cfg.Warnings) != 0 || cfg.Advisories.Source == "" {
		t.Errorf("%d rules, warnings %q, %+v", len(cfg.Rules), cfg.Warnings, cfg.Advisories)
	}
}
