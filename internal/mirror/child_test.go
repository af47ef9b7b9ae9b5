package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/obs"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// childEnv makes the test binary a worker process: the value is a JSON of childOptions.
const childEnv = "ECLUSE_MIRROR_TEST_CHILD"

type childOptions struct {
	Path, URL string // of the queue
	House     string // of the target
	Spool     string // a folder for files on their way, which a killed process leaves behind
	KillAt    string // a mark, see WorkerOptions.At; empty: live on
	Alone     bool
	Slow      time.Duration // each publication takes this long
	Rescue    time.Duration
}

// child runs jobs until it is killed.
func child() int {
	var o childOptions
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &o); err != nil {
		panic(err)
	}
	kill := func(mark string) {
		if mark == o.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	w := NewWorker(WorkerOptions{
		Lanes:    map[string]Lane{"npm": {Source: plainSource{}, Target: &plainTarget{url: o.House, slow: o.Slow}}},
		SpoolDir: o.Spool, MaxBytes: 1 << 20, Metrics: obs.NewMetrics(), Logger: slog.New(slog.DiscardHandler), At: kill,
	})
	q, err := OpenQueue(context.Background(), QueueOptions{
		URL: o.URL, Path: o.Path, Alone: o.Alone, Workers: 4, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		pollInterval: 50 * time.Millisecond, firstRetry: 10 * time.Millisecond, jobTimeout: o.Rescue - time.Second, rescueAfter: o.Rescue,
		Do: func(ctx context.Context, j Job) Outcome {
			out := w.Do(ctx, j)
			kill("-" + string(StepDone))
			return out
		},
	})
	if err != nil {
		panic(err)
	}
	if err := q.Start(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("running")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent goes
	return 0
}

// content is the file of a job.
func content(file string) []byte { return bytes.Repeat([]byte(file+"\n"), 1000) }

// plainSource gives the file of any name.
type plainSource struct{}

func (plainSource) Fetch(_ context.Context, name, file, _ string) (*gate.Copy, error) {
	body := content(file)
	sum := sha256.Sum256(body)
	return &gate.Copy{
		Version: registry.Version{Artifacts: []registry.Artifact{{File: file, Digests: []registry.Digest{{Algorithm: "sha256", Sum: sum[:]}}}}},
		Size:    int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// plainTarget is a client of shelf.
type plainTarget struct {
	url  string
	slow time.Duration
}

func (t *plainTarget) Base() string { return t.url }

func (t *plainTarget) Holds(_ context.Context, j Job) (bool, error) {
	resp, err := http.Get(t.url + "/" + j.File)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	return resp.StatusCode == 200, nil
}

func (t *plainTarget) Put(ctx context.Context, j Job, _ *gate.Copy, f *Spooled) error {
	time.Sleep(t.slow)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, t.url+"/"+j.File, f.Reader())
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusCreated:
		return nil
	case http.StatusConflict:
		return ErrPresent
	}
	return errors.New(resp.Status)
}

// shelf is a target that counts what it is sent.
type shelf struct {
	*httptest.Server
	mu        sync.Mutex
	files     map[string][]byte
	conflicts int
}

func newShelf(t testing.TB) *shelf {
	s := &shelf{files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		have, ok := s.files[r.URL.Path]
		switch {
		case r.Method == http.MethodGet && !ok:
			w.WriteHeader(404)
		case r.Method == http.MethodGet:
			_, _ = w.Write(have)
		case err != nil:
		case ok:
			s.conflicts++
			w.WriteHeader(http.StatusConflict)
		default:
			s.files[r.URL.Path] = body
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// check wants exactly the files of these jobs, whole, and says how many writes met a file that was
// there.
func (s *shelf) check(t *testing.T, jobs ...Job) (conflicts int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) != len(jobs) {
		t.Errorf("the target holds %d files, want %d", len(s.files), len(jobs))
	}
	for _, j := range jobs {
		if !bytes.Equal(s.files["/"+j.File], content(j.File)) {
			t.Errorf("%s: %d bytes that are not the file", j.File, len(s.files["/"+j.File]))
		}
	}
	return s.conflicts
}

// startChild starts a worker process and returns it with a function that waits for its end.
func startChild(t *testing.T, o childOptions) *exec.Cmd {
	t.Helper()
	o.Spool = t.TempDir()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(encoded))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if _, err := cmd.StdinPipe(); err != nil { // open while this process lives
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("child: %s", errs.String())
		}
	})
	return cmd
}

// The worker is killed with SIGKILL before and after each step of a job. The next start finds the
// job, finishes it, and the target sees each file once and whole, never a second write of one that
// it holds.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, step := range []Step{StepProbe, StepFetch, StepVerify, StepPublish, StepDone} {
		for _, side := range []string{"-", "+"} {
			if side+string(step) == "+done" { // River has acknowledged; killed anywhere after it
				continue
			}
			t.Run(side+string(step), func(t *testing.T) {
				t.Parallel()
				s := newShelf(t)
				path := filepath.Join(t.TempDir(), "queue.db")
				q := open(t, QueueOptions{Path: path, Logger: slog.New(slog.DiscardHandler)})
				insert(t, q, jobN(1))
				o := childOptions{Path: path, House: s.URL, KillAt: side + string(step), Alone: true, Rescue: time.Hour}
				if err := startChild(t, o).Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
					t.Fatalf("the worker ended with %v, want a kill", err)
				}
				if st := status(t, q); st.Done != 0 || st.Ready+st.Running != 1 {
					t.Fatalf("after the kill: %+v", st)
				}
				o.KillAt = ""
				startChild(t, o)
				until(t, "the job", func() bool { return status(t, q).Done == 1 })
				if conflicts := s.check(t, jobN(1)); conflicts != 0 {
					t.Errorf("the target was sent a file that it held")
				}
			})
		}
	}
}

// What Insert returned is there after a SIGKILL, and twice the same job is one.
func TestAcceptedJobsSurviveAKill(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	path := filepath.Join(t.TempDir(), "queue.db")
	q := open(t, QueueOptions{Path: path, Logger: slog.New(slog.DiscardHandler)})
	var jobs []Job
	for i := range 40 {
		jobs = append(jobs, jobN(i))
	}
	insert(t, q, jobs...)
	o := childOptions{Path: path, House: s.URL, Alone: true, Slow: 20 * time.Millisecond, Rescue: time.Hour}
	for kill := 1; status(t, q).Done < len(jobs); kill++ {
		c := startChild(t, o)
		want := min(kill*10, len(jobs))
		until(t, strconv.Itoa(want)+" jobs", func() bool { return status(t, q).Done >= want })
		_ = c.Process.Kill()
		_ = c.Wait()
		insert(t, q, jobs...)
	}
	if conflicts := s.check(t, jobs...); conflicts != 0 {
		t.Errorf("%d files were sent again", conflicts)
	}
}

// Two worker processes on PostgreSQL share the jobs; one is killed in the middle. No job is lost,
// and none is done twice.
func TestTwoWorkersOnPostgres(t *testing.T) {
	t.Parallel()
	address := postgres(t)
	s := newShelf(t)
	a := open(t, QueueOptions{URL: address, Logger: slog.New(slog.DiscardHandler)}) // two gates
	b := open(t, QueueOptions{URL: address, Logger: slog.New(slog.DiscardHandler)})
	var jobs []Job
	for i := range 60 {
		jobs = append(jobs, jobN(i))
	}
	fresh := 0
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, q := range []*Queue{a, b} {
		wg.Go(func() {
			n, err := q.Insert(t.Context(), jobs)
			mu.Lock()
			defer mu.Unlock()
			if fresh += n; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if fresh != len(jobs) {
		t.Fatalf("%d new jobs of two gates that offer the same %d", fresh, len(jobs))
	}
	// a slow machine still ends a job in time
	o := childOptions{URL: address, House: s.URL, Slow: 100 * time.Millisecond, Rescue: 10 * time.Second}
	first := startChild(t, o)
	until(t, "some jobs", func() bool { return status(t, a).Done >= 10 })
	startChild(t, o)
	until(t, "more jobs", func() bool { return status(t, a).Done >= 20 })
	_ = first.Process.Kill()
	until(t, "all jobs", func() bool { return status(t, a).Done == len(jobs) })
	if conflicts := s.check(t, jobs...); conflicts != 0 {
		t.Errorf("%d files were sent again", conflicts)
	}
	if st := status(t, b); st.Dead != 0 {
		t.Errorf("%+v", st)
	}
}
