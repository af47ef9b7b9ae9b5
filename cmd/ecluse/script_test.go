package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
)

const oneThread = "ecluse-one-thread"

// While packages are set up the work is on the process's first thread; a lock taken now keeps it
// there. Taken later, it would keep whatever thread the scheduler has moved the work to, and a
// tracer that follows the first thread would see nothing of it.
func init() { //nolint:gochecknoinits // see above
	if filepath.Base(os.Args[0]) == oneThread {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ecluse": func() { os.Exit(mainCode()) },
		// The same on one thread, so that a tracer can count the system calls of the work itself.
		oneThread: func() { os.Exit(mainCode()) },
	})
}

// TestScript runs the real command as its user does. The scripts stand in testdata/script;
// UPDATE_SCRIPTS=1 rewrites what they compare with.
func TestScript(t *testing.T) {
	root, err := durabletest.Root() // journals refuse folders below world-writable ones
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		WorkdirRoot:         root,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			path, err := exec.LookPath("ecluse")
			env.Setenv("ECLUSE", path) // for scripts that change PATH
			env.Values[stageKey{}] = &stage{}
			readme, readmeErr := filepath.Abs("../../README.md")
			env.Setenv("README", readme)
			return errors.Join(err, readmeErr)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": exitsWith, "emulator": startEmulator, "script": setScript, "seen": seenRequests, "walk": extractWalk,
		},
	})
}
