package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ecluse": func() { os.Exit(mainCode()) }})
}

// TestScript runs the real command as its user does. The scripts stand in testdata/script; UPDATE_SCRIPTS=1 rewrites
// what they compare with.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			path, err := exec.LookPath("ecluse")
			env.Setenv("ECLUSE", path) // for scripts that change PATH
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": exitsWith},
	})
}
