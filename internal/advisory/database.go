package advisory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// What marks a file as ours: the application id ("Ecla") and the version of the schema, both in
// SQLite's header.
const (
	applicationID = 0x45636c61
	schemaVersion = 2
)

const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE advisory (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, aliases TEXT NOT NULL, malware INTEGER NOT NULL,
  score REAL, modified TEXT NOT NULL) STRICT;
CREATE TABLE affected (package TEXT NOT NULL, advisory INTEGER NOT NULL REFERENCES advisory (n), extent TEXT NOT NULL,
  PRIMARY KEY (package, advisory, extent)) STRICT, WITHOUT ROWID;
`

// Info describes one compiled database.
type Info struct {
	Ecosystem string
	// Source is where the export came from, Validator what shows whether it has changed since (an
	// entity tag, or size and time).
	Source, Validator string
	// Compiled is when the database was made, Modified when its newest record was changed; zero
	// when no record says.
	Compiled, Modified time.Time
	// Records and Affected count what is in it; Withdrawn, Elsewhere (other ecosystems) and Broken
	// what was left out.
	Records, Affected, Withdrawn, Elsewhere, Broken int
	// Digest is the SHA-256 of its rows and of all that stands here.
	Digest string
}

// maxBrokenShare is the share of records, one in so many, that may be broken before the whole
// export is refused.
const maxBrokenShare = 100

// compileAndLoad compiles an export into a new file, and reads that back as a later start would.
func compileAndLoad(ctx context.Context, path string, ecosystem registry.Ecosystem, info Info, from string) (*index, error) {
	if err := compileInto(ctx, path, ecosystem, &info, osv.Export(from)); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	x, err := load(ctx, path, ecosystem)
	if err != nil {
		return nil, fmt.Errorf("verify: %v", err)
	}
	return x, nil
}

// compileInto writes the export into a new SQLite file at path. It counts in info what it does.
func compileInto(ctx context.Context, path string, ecosystem registry.Ecosystem, info *Info, export iter.Seq2[[]byte, error]) (err error) {
	db, err := sql.Open("sqlite", dsn(path, "_pragma", "journal_mode(off)", "_pragma", "synchronous(off)", "_pragma", "locking_mode(exclusive)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; %s", applicationID, schemaVersion, schema)); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := insertAll(ctx, tx, ecosystem, info, export); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func dsn(path string, query ...string) string {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Add(query[i], query[i+1])
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}
	return u.String()
}

func insertAll(ctx context.Context, tx *sql.Tx, ecosystem registry.Ecosystem, info *Info, export iter.Seq2[[]byte, error]) error {
	w, err := newWriter(ctx, tx, ecosystem)
	if err != nil {
		return err
	}
	for data, err := range export {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r, err := osv.Read(data, ecosystem.OSVName, info.Compiled)
		switch {
		case errors.Is(err, osv.ErrElsewhere):
			info.Elsewhere++
		case errors.Is(err, osv.ErrWithdrawn):
			info.Withdrawn++
		case err != nil:
			info.Broken++
		default:
			if err := w.insert(ctx, r); err != nil {
				return err
			}
			if r.Modified.After(info.Modified) {
				info.Modified = r.Modified
			}
		}
	}
	is, err := (&index{packages: map[string]*entry{}}).readRows(ctx, tx) // what is really there
	if err != nil {
		return err
	}
	info.Records, info.Affected = is.records, is.affected
	if read := info.Records + info.Withdrawn + info.Elsewhere + info.Broken; info.Broken*maxBrokenShare > read {
		return fmt.Errorf("%d of %d records are broken", info.Broken, read)
	}
	info.Digest = info.seal(is.digest)
	return writeMeta(ctx, tx, info)
}

// writer holds the prepared statements.
type writer struct {
	ecosystem        registry.Ecosystem
	advisory, affect *sql.Stmt
}

func newWriter(ctx context.Context, tx *sql.Tx, ecosystem registry.Ecosystem) (*writer, error) {
	// A record that is there twice affects what either of the two affects.
	advisory, err := tx.PrepareContext(ctx, `INSERT INTO advisory (id, aliases, malware, score, modified) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET malware = max(malware, excluded.malware),
		score = max(coalesce(score, excluded.score), coalesce(excluded.score, score)) RETURNING n`)
	if err != nil {
		return nil, err
	}
	affect, err := tx.PrepareContext(ctx, `INSERT OR IGNORE INTO affected (package, advisory, extent) VALUES (?, ?, ?)`)
	return &writer{ecosystem: ecosystem, advisory: advisory, affect: affect}, err
}

func (w *writer) insert(ctx context.Context, r *osv.Record) error {
	aliases, err := json.Marshal(append([]string{}, r.Aliases...))
	if err != nil {
		return err
	}
	var n int
	score := sql.NullFloat64{Float64: r.Score, Valid: r.Scored}
	if err := w.advisory.QueryRowContext(ctx, r.ID, string(aliases), r.Malware, score, r.Modified.UTC().Format(time.RFC3339)).Scan(&n); err != nil {
		return fmt.Errorf("record %s: %v", r.ID, err)
	}
	for name, extents := range r.Packages {
		for _, e := range extents {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if _, err := w.affect.ExecContext(ctx, w.ecosystem.Canonical(name), n, string(text)); err != nil {
				return fmt.Errorf("record %s: %v", r.ID, err)
			}
		}
	}
	return nil
}

// meta lists the fields of an Info under the names that they are stored by.
func (i *Info) meta() (texts map[string]*string, times map[string]*time.Time, counts map[string]*int) {
	texts = map[string]*string{"ecosystem": &i.Ecosystem, "source": &i.Source, "validator": &i.Validator, "digest": &i.Digest}
	times = map[string]*time.Time{"compiled": &i.Compiled, "modified": &i.Modified}
	counts = map[string]*int{
		"records": &i.Records, "affected": &i.Affected, "withdrawn": &i.Withdrawn, "elsewhere": &i.Elsewhere, "broken": &i.Broken,
	}
	return texts, times, counts
}

// stored is the fields of an Info as they are stored.
func (i *Info) stored() map[string]string {
	rows := map[string]string{}
	texts, times, counts := i.meta()
	for key, v := range texts {
		rows[key] = *v
	}
	for key, v := range times {
		rows[key] = v.UTC().Format(time.RFC3339Nano)
	}
	for key, v := range counts {
		rows[key] = strconv.Itoa(*v)
	}
	return rows
}

// seal is the digest of an Info and of rows that come to a digest of their own.
func (i *Info) seal(rows string) string {
	all := i.stored()
	all["digest"] = rows
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_, _ = fmt.Fprintf(sum, "%q %q\n", key, all[key]) // a hash does not fail
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func writeMeta(ctx context.Context, tx *sql.Tx, info *Info) error {
	for key, v := range info.stored() {
		if _, err := tx.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES (?, ?)`, key, v); err != nil {
			return err
		}
	}
	return nil
}
