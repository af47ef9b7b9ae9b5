package mirror

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

func patient(t *testing.T, dir string) *Service {
	t.Helper()
	s, err := Begin(t.Context(), ServiceOptions{DataDir: dir, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A queue that cannot be opened stops nothing: what is offered waits in memory, the status says
// why, and it is saved as soon as the folder can be had.
func TestQueueOpensLater(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "mirror")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := ServiceOptions{DataDir: dir, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler)}
	if _, err := Begin(t.Context(), o); err == nil {
		t.Error("a command that is nothing without its queue began")
	}
	s := patient(t, dir)
	s.Offer(jobN(1))
	until(t, "the offer to be refused by the store", func() bool { _, err := s.Status(t.Context()); return err != nil })
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := s.open(t.Context()); err != nil { // as watch does, some seconds later
		t.Fatal(err)
	}
	until(t, "the job", func() bool { st, err := s.Status(t.Context()); return err == nil && st.Ready == 1 && st.Unsaved == 0 })
	s.cancel() // nobody has to try any more
	s.Stop(t.Context())
	if st := reopened(t, dir); st.Ready != 1 {
		t.Errorf("%+v", st)
	}
}

// A service whose queue never opened ends at once, and counts what it could not save.
func TestStopWithoutQueue(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mirror"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := patient(t, dir)
	s.Offer(jobN(1))
	began := time.Now()
	s.Stop(t.Context())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, lost := s.offers.Unsaved(); lost > 1 {
		t.Errorf("%d lost of one", lost)
	}
}

// What was configured wrong is an error at once: another process runs the jobs, or the address is
// none.
func TestPatienceHasLimits(t *testing.T) {
	dir := t.TempDir()
	o := ServiceOptions{DataDir: dir, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), Patient: true, Work: true}
	first, err := Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop(t.Context())
	if _, err := Begin(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another process is running the mirror jobs") {
		t.Error(err)
	}
	o.DataDir, o.QueueURL = t.TempDir(), "nonsense://x y"
	if _, err := Begin(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not the address of a PostgreSQL database") {
		t.Error(err)
	}
}

func reopened(t *testing.T, dir string) Status {
	t.Helper()
	s := patient(t, dir)
	defer s.Stop(t.Context())
	st, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// A database that is not what was written is set aside, and a new one takes its place.
func TestDamagedQueue(t *testing.T) {
	for name, damage := range map[string]func(data []byte) []byte{
		"zeroed":     func(data []byte) []byte { clear(data); return data },
		"no header":  func(data []byte) []byte { clear(data[:100]); return data },
		"cut":        func(data []byte) []byte { return data[:len(data)/2] },
		"a page off": func(data []byte) []byte { clear(data[8192:16384]); return data },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := patient(t, dir)
			s.Offer(jobN(1))
			until(t, "the job", func() bool { st, err := s.Status(t.Context()); return err == nil && st.Ready == 1 })
			s.Stop(t.Context())
			path := filepath.Join(dir, "mirror", "queue.db")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if st := reopened(t, dir); st.Ready != 0 {
				t.Errorf("%+v", st)
			}
			if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) == 0 {
				t.Error("the damaged one is not kept for a look")
			}
		})
	}
}

// A job whose row was changed on disk is dropped, and no other file is copied in its place.
func TestDamagedJob(t *testing.T) {
	for field, change := range map[string]string{
		"package": `json_set(args, '$.package', 'left-pae')`,
		"version": `json_set(args, '$.version', '1.0.9')`,
		"file":    `json_set(args, '$.file', 'left-pad-1.0.9.tgz')`,
		"sum":     `json_remove(args, '$.sum')`,
	} {
		t.Run(field, func(t *testing.T) {
			script := newScript(func(Job, int) Outcome { return Outcome{Result: Published} })
			o := QueueOptions{
				Path: filepath.Join(t.TempDir(), "queue.db"), Alone: true, Workers: 1, Do: script.Do,
				Logger: slog.New(slog.DiscardHandler), pollInterval: 50 * time.Millisecond,
			}
			q := open(t, o)
			insert(t, q, jobN(1), jobN(2))
			db, err := sql.Open("sqlite", o.Path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), `UPDATE river_job SET args = `+change+` WHERE id = 1`); err != nil {
				t.Fatal(err)
			}
			db.Close()
			begin(t, q)
			until(t, "both jobs to end", func() bool { return status(t, q).Done == 2 })
			if script.total() != 1 || script.count(jobN(2)) != 1 {
				t.Errorf("%d jobs were run", script.total())
			}
		})
	}
}

// A disk without room is not the job's fault: it waits, and spends no attempt.
func TestFullDiskSpendsNoAttempt(t *testing.T) {
	w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler), Metrics: obs.NewMetrics()})
	for _, err := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EMFILE} {
		if o := w.judge(t.Context(), durable.OfDisk(err)); o.Result != Snoozed || o.Wait != diskPause {
			t.Errorf("%v: %+v", err, o)
		}
	}
	if o := w.judge(context.Background(), errors.New("anything else")); o.Result != Failed {
		t.Errorf("%+v", o)
	}
	w.SpoolDir = filepath.Join(t.TempDir(), "none")
	if _, err := durable.Scratch(w.SpoolDir); !durable.IsDisk(err) {
		t.Errorf("%v is not an error of the disk", err)
	}
}

// A queue that is damaged, removed or exchanged while it is in use is made anew: what is offered
// afterwards, and what a client asks for again, is saved, and by the file that the next start
// reads.
func TestQueueIsLostInUse(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"zeroed": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			// else all of it is in another file as well
			_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
			info, serr := os.Stat(path)
			if err = errors.Join(err, serr, db.Close()); err != nil {
				return err
			}
			return os.WriteFile(path, make([]byte, info.Size()), 0o600)
		},
		"removed":        os.Remove,
		"folder removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"exchanged": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("nothing"), 0o600), os.Rename(path+"2", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := patient(t, dir)
			s.Offer(jobN(1))
			ready := func(n int) func() bool {
				return func() bool { st, err := s.Status(t.Context()); return err == nil && st.Ready == n && st.Unsaved == 0 }
			}
			until(t, "the job", ready(1))
			lost, err := s.current()
			if err != nil {
				t.Fatal(err)
			}
			if err := lose(s.path()); err != nil {
				t.Fatal(err)
			}
			s.Offer(jobN(2)) // into the old one
			until(t, "another queue", func() bool { q, err := s.current(); return err == nil && q != lost })
			s.Offer(jobN(1))
			s.Offer(jobN(3))
			if name == "zeroed" {
				s.Offer(jobN(2)) // nobody could read that it was there
			}
			until(t, "all jobs", ready(3))
			s.Stop(t.Context())
			if st := reopened(t, dir); st.Ready != 3 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// What River has to say is said once for each kind, and again later.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := slog.New(quiet{slog.NewTextHandler(&log, nil), &sync.Map{}})
		for range 3 {
			l.Error("no jobs", "err", "x")
			l.With("a", 1).WithGroup("g").Error("no leader")
			l.Warn("a job's")
			time.Sleep(quietFor / 4)
		}
		if n, m := strings.Count(log.String(), "no jobs"), strings.Count(log.String(), "\n"); n != 1 || m != 2 {
			t.Errorf("%s", log.String())
		}
		time.Sleep(quietFor / 4)
		l.Error("no jobs")
		if n := strings.Count(log.String(), "no jobs"); n != 2 {
			t.Errorf("%s", log.String())
		}
	})
}
