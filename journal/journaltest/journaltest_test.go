package journaltest_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

var layout = &journal.Layout{Kind: "test", Types: []journal.Type{{Name: "run"}}}

// S93: what the helper gives is accepted, itself and below it; the same folder opened to others is
// not.
func TestAccepted(t *testing.T) {
	root, err := journaltest.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	for _, dir := range []string{root, journaltest.Dir(t), filepath.Join(journaltest.Dir(t), "below")} {
		j, err := journal.Create(dir, layout, struct{}{}, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Open(dir, layout, journal.Options{}); !errors.Is(err, journal.CodeFolder) {
			t.Errorf("opened to others: %v", err)
		}
	}
}
