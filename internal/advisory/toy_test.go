package advisory

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/ecosystem/ecosystemtest"
)

// Advisories about an ecosystem that the product does not have: OSV's name for it, its way with
// names and its order of versions are all that is needed.
func TestToyEcosystem(t *testing.T) {
	record := `{"id":"TOY-1","modified":"2026-01-02T03:04:05Z","affected":[{"package":{"ecosystem":"ToyBox","name":"Blocks"},` +
		`"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"y"},{"fixed":"c"}]}]}]}`
	store, err := Open(t.Context(), Options{
		Dir: t.TempDir(), Source: zipOf(t, record), Ecosystems: append(ecosystemtest.All(), ecosystemtest.Toy()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Refresh(t.Context(), "toy"); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"z": "", "y": "TOY-1<c", "d": "TOY-1<c", "c": "TOY-1 fix", "a": ""} {
		if got := say(t, store.Data(), "toy", "blocks", version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if got := say(t, store.Data(), "npm", "blocks", "1.0.0"); got != "" {
		t.Errorf("npm has an advisory of another ecosystem: %s", got)
	}
	if err := store.Refresh(t.Context(), "nowhere"); err == nil {
		t.Error("an ecosystem that the store does not have is looked at")
	}
}
