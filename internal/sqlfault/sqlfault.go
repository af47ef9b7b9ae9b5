// Package sqlfault tells what kind of trouble an SQLite database has, and sets a damaged one aside.
package sqlfault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrDamaged says that a database is not what was written.
var ErrDamaged = errors.New("the database is damaged")

// IsDisk reports an error of the disk below a database: full, failing, or not to be written.
func IsDisk(err error) bool {
	return is(err, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
}

// IsDamaged reports a database that is not what was written, or none at all.
func IsDamaged(err error) bool {
	return errors.Is(err, ErrDamaged) || is(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
}

func is(err error, codes ...int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if e.Code()&0xff == code {
			return true
		}
	}
	return false
}

// Check reads a whole database and reports what is wrong with its structure. What its rows say is
// for their owner to check.
func Check(ctx context.Context, db *sql.DB) error {
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, found)
	}
	return nil
}

// SetAside gives a damaged database another name, so that a new one can take its place.
func SetAside(path string) error {
	name := fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102T150405"))
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := durable.Rename(path+part, name+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set a damaged database aside: %w", err)
		}
	}
	return nil
}
