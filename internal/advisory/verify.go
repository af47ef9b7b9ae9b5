package advisory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/internal/sqlfault"
)

// load opens a compiled database, verifies it and reads it into memory. Whatever is not as it was
// written is an error: another schema, another ecosystem, a damaged page, a row too few.
func load(ctx context.Context, path string, ecosystem registry.Ecosystem) (x *index, err error) {
	db, err := sql.Open("sqlite", dsn(path, "mode", "ro", "immutable", "1"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	x = &index{ecosystem: ecosystem, packages: map[string]*entry{}}
	if err := verifyHeader(ctx, db); err != nil {
		return nil, err
	}
	if err := x.info.read(ctx, db); err != nil {
		return nil, err
	}
	if x.info.Ecosystem != ecosystem.Name {
		return nil, fmt.Errorf("the database is for %q, not %q", x.info.Ecosystem, ecosystem.Name)
	}
	is, err := x.readRows(ctx, db)
	is.digest = x.info.seal(is.digest)
	should := content{x.info.Records, x.info.Affected, x.info.Digest}
	switch {
	case err != nil:
		return nil, err
	case is != should:
		return nil, fmt.Errorf("the database does not match its export: %d records and %d rows, expected %d and %d",
			is.records, is.affected, should.records, should.affected)
	case is.affected == 0:
		return nil, errors.New("the database is empty")
	}
	return x, nil
}

// content is what the rows of a database come to: how many there are, and a digest over all of
// them.
type content struct {
	records, affected int
	digest            string
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// readRows reads all rows into memory.
func (x *index) readRows(ctx context.Context, q querier) (content, error) {
	sum := sha256.New()
	advisories, err := readAdvisories(ctx, q, sum)
	if err != nil {
		return content{}, err
	}
	affected, err := x.readAffected(ctx, q, advisories, sum)
	return content{len(advisories), affected, hex.EncodeToString(sum.Sum(nil))}, err
}

func verifyHeader(ctx context.Context, db *sql.DB) error {
	var id, version int
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if id != applicationID || version != schemaVersion {
		return fmt.Errorf("not an advisory database of schema %d (application %#x, schema %d)", schemaVersion, id, version)
	}
	return sqlfault.Check(ctx, db)
}

// read fills i from the meta table. Every field must be there.
func (i *Info) read(ctx context.Context, db *sql.DB) error {
	stored := map[string]string{}
	err := each(ctx, db, `SELECT key, value FROM meta`, func(rows *sql.Rows) error {
		var key, value string
		err := rows.Scan(&key, &value)
		stored[key] = value
		return err
	})
	if err != nil {
		return err
	}
	texts, times, counts := i.meta()
	for key, v := range texts {
		*v = stored[key]
	}
	for key, v := range times {
		if *v, err = time.Parse(time.RFC3339Nano, stored[key]); err != nil {
			return fmt.Errorf("meta %s: %v", key, err)
		}
	}
	for key, v := range counts {
		if *v, err = strconv.Atoi(stored[key]); err != nil {
			return fmt.Errorf("meta %s: %v", key, err)
		}
	}
	return nil
}

func readAdvisories(ctx context.Context, q querier, sum io.Writer) (map[int]*storedAdvisory, error) {
	all := map[int]*storedAdvisory{}
	err := each(ctx, q, `SELECT n, id, aliases, malware, score FROM advisory ORDER BY n`, func(rows *sql.Rows) error {
		var n int
		var score sql.NullFloat64
		a := &storedAdvisory{}
		err := rows.Scan(&n, &a.id, &a.aliases, &a.malware, &score)
		a.score, a.scored = score.Float64, score.Valid
		if a.aliases == "[]" {
			a.aliases = "[]" // the constant, not one of 100,000 copies
		}
		all[n] = a
		// a hash does not fail
		_, _ = fmt.Fprintf(sum, "%d %q %q %t %t %x\n", n, a.id, a.aliases, a.malware, a.scored, a.score)
		return err
	})
	return all, err
}

// readAffected reads the rows, which come in the order of the packages, and returns how many there
// are.
func (x *index) readAffected(ctx context.Context, q querier, advisories map[int]*storedAdvisory, sum io.Writer) (int, error) {
	count := 0
	extents := map[string]string{} // most extents are the same few
	var current *entry
	var name string
	err := each(ctx, q, `SELECT package, advisory, extent FROM affected ORDER BY package, advisory, extent`, func(rows *sql.Rows) error {
		var pkg, text sql.RawBytes
		var n int
		if err := rows.Scan(&pkg, &n, &text); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%q %d %q\n", pkg, n, text)
		a, ok := advisories[n]
		if !ok {
			return fmt.Errorf("an affected package refers to record %d, which does not exist", n)
		}
		ext, ok := extents[string(text)]
		if !ok {
			ext = string(text)
			if len(extents) < 10_000 {
				extents[ext] = ext
			}
		}
		if current == nil || name != string(pkg) {
			name = string(pkg)
			current = &entry{}
			x.packages[name] = current
		}
		current.facts = append(current.facts, fact{a, ext})
		count++
		return nil
	})
	return count, err
}

func each(ctx context.Context, q querier, query string, row func(*sql.Rows) error) (err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
