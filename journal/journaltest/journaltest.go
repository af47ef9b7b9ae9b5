// Package journaltest finds folders that package journal accepts, for tests and examples. A
// journal's folder must be private: owned by you, closed to others, below folders that only you and
// root can write to. The usual temporary folder is world-writable and therefore refused, so these
// lie below your own folders.
//
// # Stability
//
// The names here are as stable as those of package journal. Where the folders lie may change at any
// time.
package journaltest

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
)

// Dir makes a new, empty, private folder that is removed with the test.
func Dir(tb testing.TB) string {
	tb.Helper()
	return durabletest.Dir(tb)
}

// Root makes a new, empty, private folder that the caller removes; for TestMain, examples and
// scripts. It tries the folder that ECLUSE_TEST_ROOT names, your cache, home and runtime folders,
// and the working folder, and says what was wrong with the last of them.
func Root() (string, error) { return durabletest.Root() }
