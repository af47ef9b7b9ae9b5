package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/config"
)

// R90: a budget for each authority, off by default.
func TestBudgets(t *testing.T) {
	if c := load(t, with("")); len(c.Budgets) != 0 {
		t.Errorf("by default: %v", c.Budgets)
	}
	c := load(t, with(`
budget:
  npm.example: {rate: 2.5}
  "pypi.org:443":
    rate: 10
    burst: 50
  files.pythonhosted.org:443: {rate: 0.1, burst: 1}
`))
	want := map[cooldown.Authority]config.Budget{
		{Host: "npm.example", Port: 443}:            {Rate: 2.5, Burst: 3},
		{Host: "pypi.org", Port: 443}:               {Rate: 10, Burst: 50},
		{Host: "files.pythonhosted.org", Port: 443}: {Rate: 0.1, Burst: 1},
	}
	if diff := cmp.Diff(want, c.Budgets); diff != "" || len(c.Warnings) != 0 {
		t.Error(diff, c.Warnings)
	}
	shown := map[string]string{}
	for _, s := range c.Settings() {
		shown[s.Key] = s.Value
	}
	if shown["budget.pypi.org:443.burst"] != "50" || shown["budget.npm.example.rate"] != "2.5" {
		t.Errorf("shown: %v", shown)
	}
	// that one is not cooled either
	for _, nobody := range []string{"elsewhere.example", "private.example"} {
		c := load(t, with("mounts: {npm: {private: https://private.example/, firstParty: [a]}}\nbudget: {"+nobody+": {rate: 1}}"))
		if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], nobody+":443") {
			t.Errorf("a budget for nobody: %q", c.Warnings)
		}
	}
}

// R90: the bounds themselves are allowed, and so is a budget for where advisories come from.
func TestBudgetBounds(t *testing.T) {
	c := load(t, with(`
advisories: {source: "https://osv.example/{ecosystem}/all.zip"}
rules: {advisories: {type: DenyIfAdvisory, minCVSS: 7}}
budget: {npm.example: {rate: 0.01, burst: 100000}, osv.example: {rate: 100000}}
`))
	want := map[cooldown.Authority]config.Budget{
		{Host: "npm.example", Port: 443}: {Rate: 0.01, Burst: 100_000},
		{Host: "osv.example", Port: 443}: {Rate: 100_000, Burst: 100_000},
	}
	if diff := cmp.Diff(want, c.Budgets); diff != "" || len(c.Warnings) != 0 {
		t.Error(diff, c.Warnings)
	}
}

// R90: what is wrong with a budget is said with its place.
func TestBudgetProblems(t *testing.T) {
	for file, want := range map[string]string{
		"budget: {npm.example: {burst: 3}}":                                "needs a rate",
		"budget: {npm.example: {rate: 0}}":                                 "not a number of requests per second",
		"budget: {npm.example: {rate: -1}}":                                "not a number of requests per second",
		"budget: {npm.example: {rate: 0.009}}":                             "from 0.01 to 100000",
		"budget: {npm.example: {rate: 100001}}":                            "from 0.01 to 100000",
		"budget: {npm.example: {rate: 1, burst: 100001}}":                  "from 1 to 100000",
		"budget: {npm.example: {rate: {}}}":                                "write budget: {HOST",
		"budget: {npm.example: {rate: 1, burst: {}}}":                      "write budget: {HOST",
		"budget: {npm.example: {rate: 1, bust: 2}}":                        "did you mean burst?; write budget: {HOST",
		"budget: {npm.example: {rate: NaN}}":                               "not a number of requests per second",
		"budget: {npm.example: {rate: 1e9}}":                               "not a number of requests per second",
		"budget: {npm.example: {rate: [1]}}":                               "not a number of requests per second",
		"budget: {npm.example: {rate: 1, burst: 0}}":                       "not a number of requests from 1",
		"budget: {npm.example: {rate: 1, burst: 1.5}}":                     "not a number of requests from 1",
		"budget: {npm.example: {rate: 1, burts: 2}}":                       "write budget: {HOST",
		"budget: {npm.example: 5}":                                         "write budget: {HOST",
		"budget: {npm.example: {}}":                                        "write budget: {HOST",
		"budget: {\"https://npm.example/\": {rate: 1}}":                    "write host or host:port",
		"budget: {npm.example: {rate: 1}, \"NPM.example:443\": {rate: 1}}": "another spelling",
		"budget: 5":               "group of settings",
		"serve: {a.b: {rate: 1}}": "may not contain a dot",
	} {
		list := problems(t, with(file))
		if len(list) != 1 || !strings.Contains(list[0].Text, want) || list[0].Line != 1 {
			t.Errorf("%s: %+v, want %q", file, list, want)
		}
	}
	for _, file := range []string{"budget:", "budget: {}"} {
		if c := load(t, with(file)); len(c.Budgets) != 0 {
			t.Errorf("%s: %v", file, c.Budgets)
		}
	}
}
