// Package bench_test measures the real command beside other servers. Each server is a process of
// its own, and so is the load generator, so that no server's time or memory holds a part of
// another's. docs/performance.md says how to run it and what came out.
package bench_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("BENCH_PLAIN_SERVER"); dir != "" {
		fmt.Fprintln(os.Stderr, servePlain(dir))
		os.Exit(1)
	}
	os.Exit(run(m))
}

// scratch is a folder for what all benchmarks share.
var scratch string

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ecluse-bench")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() != "" {
		describe()
	}
	return m.Run()
}

// describe prints what else decides a measurement, in the form of the lines that go test puts
// before its results.
func describe() {
	load, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		fmt.Printf("load-before: %s\n", strings.Fields(string(load))[0])
	}
	fmt.Printf("cores: %d\ngo: %s\n", runtime.NumCPU(), strings.TrimPrefix(runtime.Version(), "go"))
	for _, tool := range []struct{ key, name, flag string }{{"kernel", "uname", "-r"}, {"nginx", "nginx", "-v"}, {"node", "node", "--version"}} {
		if path, ok := lookPath(tool.name); ok {
			out, _ := exec.Command(path, tool.flag).CombinedOutput()
			// what a kernel's builder adds says nothing
			version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "-")
			fmt.Printf("%s: %s\n", tool.key, strings.TrimPrefix(strings.TrimPrefix(version, "nginx version: nginx/"), "v"))
		}
	}
	var verdaccio struct{ Version string }
	if text, err := os.ReadFile("../../testtools/node_modules/verdaccio/package.json"); err == nil && json.Unmarshal(text, &verdaccio) == nil {
		fmt.Printf("verdaccio: %s\n", verdaccio.Version)
	}
}

// binary builds the command once. With BENCH_PROFILE it can profile itself.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "ecluse")
	args := []string{"build", "-o", path}
	if os.Getenv("BENCH_PROFILE") != "" {
		overlay, err := profileOverlay()
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, "../../cmd/ecluse")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return path, nil
})

// profileOverlay adds a file to the command's package without changing the tree.
func profileOverlay() (string, error) {
	hook, err := filepath.Abs("testdata/profile.go.txt")
	if err != nil {
		return "", err
	}
	added, err := filepath.Abs("../../cmd/ecluse/zz_profile.go")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {added: hook}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// servePlain is what plain Go does: below /memory/ the files of a folder as http.ServeContent has
// them from memory, below /disk/ as http.ServeFile has them. A name with .gz in it is served as
// packed JSON.
func servePlain(dir string) error {
	files := map[string][]byte{}
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if files[name.Name()], err = os.ReadFile(filepath.Join(dir, name.Name())); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/memory/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(name, ".gz") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[name]))
	})
	mux.HandleFunc("/disk/{name}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, r.PathValue("name")))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String() + "/")
	return http.Serve(l, mux)
}
