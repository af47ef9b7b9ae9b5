package app

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/configuration.md names every key, and no key that does not exist.
func TestConfigurationPage(t *testing.T) {
	page := readDoc(t, "configuration.md")
	inWorld(t, "", func(w *world) {
		known := map[string]bool{}
		for _, s := range w.config("").Settings() {
			known[s.Key] = true
			if !strings.HasPrefix(s.Key, "rules.") && !strings.Contains(page, "`"+s.Key+"`") {
				t.Errorf("docs/configuration.md does not name %s", s.Key)
			}
		}
		for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(page, -1) {
			for _, key := range regexp.MustCompile("`([a-zA-Z.]+)`").FindAllStringSubmatch(m[1], -1) {
				if !known[key[1]] && !strings.HasPrefix(key[1], "rules.") && !strings.HasPrefix(key[1], "budget.AUTHORITY.") && key[1] != "cooldown.shared" {
					t.Errorf("docs/configuration.md names %s, which is no key", key[1])
				}
			}
		}
	})
}

// docs/gate.md names every metric.
func TestMetricsPage(t *testing.T) {
	page := readDoc(t, "gate.md")
	source, err := os.ReadFile("../obs/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`"(ecluse_[a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 10 {
		t.Fatalf("only %d metrics found", len(names))
	}
	for _, m := range names {
		if !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/gate.md does not name %s", m[1])
		}
	}
}
