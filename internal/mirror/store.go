package mirror

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/sqlfault"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// engine is what the queue needs of a River client, whatever its database.
type engine interface {
	InsertMany(ctx context.Context, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
	JobRetry(ctx context.Context, id int64) (*rivertype.JobRow, error)
	JobDelete(ctx context.Context, id int64) (*rivertype.JobRow, error)
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
}

// store is an open database with a client on it.
type store struct {
	engine
	exec  riverdriver.Executor
	name  string // "sqlite", "postgresql"
	close func()
}

// openStore opens the database, brings its tables up to date and makes a client.
func openStore(ctx context.Context, o QueueOptions, cfg *river.Config) (*store, error) {
	if o.URL == "" {
		return openSQLite(ctx, o.Path, cfg)
	}
	pool, err := openPostgres(ctx, o.URL, o.Workers)
	if err != nil {
		return nil, fmt.Errorf("open the job queue: %w", err)
	}
	return newStore[pgx.Tx](ctx, riverpgxv5.New(pool), cfg, "postgresql", pool.Close)
}

func openPostgres(ctx context.Context, address string, workers int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		// the cause would show the password
		return nil, &configured{"queue.url is not the address of a PostgreSQL database"}
	}
	cfg.MaxConns = max(cfg.MaxConns, int32(min(workers, 64))+4) //nolint:gosec // small
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pool.Ping(ping); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the PostgreSQL database at %s is unreachable: %v", cfg.ConnConfig.Host, err)
	}
	return pool, nil
}

// openSQLite opens the file in WAL mode with full syncs, so that a job that was accepted survives a
// loss of power. One connection at a time writes; other processes wait their turn.
func openSQLite(ctx context.Context, path string, cfg *river.Config) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate&" + strings.Join([]string{
		"_pragma=busy_timeout(10000)", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(1)",
	}, "&")}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, fmt.Errorf("open the job queue %s: %v", path, err)
	}
	db.SetMaxOpenConns(1)
	if err := sqlfault.Check(ctx, db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open the job queue %s: %w; it needs a writable folder on a local disk", path, err)
	}
	s, err := newStore[*sql.Tx](ctx, riversqlite.New(db), cfg, "sqlite", func() { _ = db.Close() })
	if err != nil {
		return nil, fmt.Errorf("open the job queue %s: %w; it needs a writable folder on a local disk", path, err)
	}
	return s, nil
}

func newStore[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], cfg *river.Config, name string, done func()) (*store, error) {
	if err := migrate(ctx, driver, cfg.Logger); err != nil {
		done()
		return nil, fmt.Errorf("migrate the job queue: %w", err)
	}
	client, err := river.NewClient(driver, cfg)
	if err != nil {
		done()
		return nil, err
	}
	return &store{engine: client, exec: driver.GetExecutor(), name: name, close: done}, nil
}

// migrate brings the tables up to date. Processes that start together may get in each other's way;
// the loser finds the work done.
func migrate[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], logger *slog.Logger) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: logger})
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		if err == nil || try == 5 {
			return err
		}
		select {
		case <-time.After(time.Duration(try+1) * 100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
