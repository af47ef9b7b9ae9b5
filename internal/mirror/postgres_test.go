package mirror

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// cluster is one PostgreSQL server for all tests of the package; each test gets a database of its
// own.
var cluster struct {
	once   sync.Once
	socket string // the folder of the server's socket
	err    error
	stop   func()
	mu     sync.Mutex
	n      int
}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	code := m.Run()
	if cluster.stop != nil {
		cluster.stop()
	}
	os.Exit(code)
}

// postgres gives the address of an empty database, or skips the test where PostgreSQL is not
// installed.
func postgres(t testing.TB) string {
	t.Helper()
	cluster.once.Do(func() { cluster.socket, cluster.stop, cluster.err = startPostgres() })
	if cluster.err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("PostgreSQL: %v; make setup installs it", cluster.err)
		}
		t.Skipf("SKIPPED: PostgreSQL: %v; make setup installs it", cluster.err)
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.n++
	name := fmt.Sprintf("queue%d", cluster.n)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "postgres://postgres@/postgres?host="+cluster.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return "postgres://postgres@/" + name + "?host=" + cluster.socket
}

// startPostgres makes a cluster in a folder of its own and starts it on a socket there: a free port
// could be another's by the time that the server listens. The server refuses to run as root, so
// that root lends it the user that the package made.
func startPostgres() (dir string, stop func(), err error) {
	bin, err := postgresBin()
	if err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp("", "ecluse-postgres-"); err != nil {
		return "", nil, err
	}
	run := func(name string, args ...string) error {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		if os.Getuid() == 0 {
			cmd = exec.Command("setpriv", append([]string{"--reuid=postgres", "--regid=postgres", "--init-groups", "--", filepath.Join(bin, name)}, args...)...)
		}
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v\n%s", name, err, out)
		}
		return nil
	}
	data := filepath.Join(dir, "data")
	if os.Getuid() == 0 {
		if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("chown: %v %s", err, out)
		}
	}
	if err := run("initdb", "-A", "trust", "-U", "postgres", "-N", "-D", data); err != nil {
		return "", nil, err
	}
	options := fmt.Sprintf("-c listen_addresses= -k %s -c max_connections=200", dir)
	if err := run("pg_ctl", "-D", data, "-o", options, "-l", filepath.Join(dir, "log"), "-w", "-t", "120", "start"); err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = run("pg_ctl", "-D", data, "-m", "immediate", "-w", "-t", "60", "stop")
		_ = os.RemoveAll(dir)
	}, nil
}

// postgresBin finds the folder of the server's programs, which distributions keep off the PATH.
func postgresBin() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dirs := []string{}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	more, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, dir := range append(dirs, more...) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("initdb is not installed")
}
