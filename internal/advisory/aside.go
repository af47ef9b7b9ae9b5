package advisory

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable/spool"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// renewAside is renew where the folder does not take it: in a temporary one, for this process
// alone. The data is asked in memory, so nothing but the next start misses it.
func (s *Store) renewAside(ctx context.Context, ecosystem registry.Ecosystem) (time.Time, error) {
	folder, done, err := spool.Temporary("ecluse-advisories-")
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	return s.renew(ctx, place{folder, folder.Path()}, ecosystem)
}

// place is a folder that databases are made in.
type place struct {
	folder *spool.Folder
	dir    string
}

// has reports whether a database is there: what a failing disk did not take is compiled again.
func (p place) has(ecosystem string, number int64) bool {
	_, err := os.Stat(filepath.Join(p.dir, databaseName(ecosystem, number)))
	return err == nil
}
