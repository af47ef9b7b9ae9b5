package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pip is one installation of pip. In docs/clients.md all of them have one row.
type pip struct {
	python, name, version string
	// builds says that the interpreter has setuptools and wheel, so that sources can be built
	// without a network.
	builds bool
}

// pips are that of the system, which must be there, and, where they are, that of the interpreter on
// PATH and the newest of pyenv's.
func pips(t *testing.T) []pip {
	t.Helper()
	found := findPips()
	if len(found) == 0 || !found[0].builds {
		missing(t, "/usr/bin/python3 with pip, setuptools and wheel")
	}
	return found
}

var findPips = sync.OnceValue(func() (found []pip) {
	candidates := []string{"/usr/bin/python3", "python3"}
	others, _ := filepath.Glob(filepath.Join(os.Getenv("PYENV_ROOT"), "versions", "3.*", "bin", "python3"))
	minor := func(python string) (n int) {
		_, _ = fmt.Sscanf(python[strings.LastIndex(python, "/3.")+3:], "%d", &n)
		return n
	}
	slices.SortFunc(others, func(a, b string) int { return minor(a) - minor(b) })
	if len(others) > 0 {
		candidates = append(candidates, others[len(others)-1])
	}
	known := map[string]bool{}
	for i, python := range candidates {
		out, err := exec.Command(python, "-c", "import sys, pip; print(pip.__version__, sys.executable)").Output()
		if err != nil && i == 0 {
			return nil
		}
		version, executable, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err != nil || known[version] {
			continue
		}
		known[version] = true
		found = append(found, pip{python: executable, name: "pip " + version, version: version})
	}
	found[0].builds = exec.Command(found[0].python, "-c", "import setuptools, wheel").Run() == nil
	return found
})

// sandbox is a folder in which a Python client works, with a home of its own.
type sandbox struct {
	dir, home string
	env       []string
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{dir: t.TempDir(), home: t.TempDir()}
	s.env = environment(s.home, "PIP_CONFIG_FILE=/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1", "PIP_NO_COMPILE=1",
		"PIP_ROOT_USER_ACTION=ignore", "PIP_NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1", "NO_COLOR=1", "COLUMNS=400", "PYENV_ROOT="+os.Getenv("PYENV_ROOT"))
	return s
}

// run starts pip with a command and the gate as the only index.
func (p pip) run(t *testing.T, s *sandbox, index string, args ...string) result {
	t.Helper()
	argv := append([]string{p.python, "-m", "pip", args[0], "--index-url", index}, args[1:]...)
	return play(t, s.dir, s.env, argv...)
}

func (p pip) must(t *testing.T, s *sandbox, index string, args ...string) result {
	t.Helper()
	r := p.run(t, s, index, args...)
	if r.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", p.name, strings.Join(args, " "), r.code, r.output)
	}
	return r
}

// target installs into a new folder and tells what is there then.
func (p pip) target(t *testing.T, s *sandbox, index string, args ...string) ([]string, result) {
	t.Helper()
	dir := t.TempDir()
	r := p.must(t, s, index, append([]string{"install", "--target", dir}, args...)...)
	return distributions(t, dir), r
}

// manager is a project manager: poetry or pdm.
type manager struct {
	name, command, lockFile string
	project                 func(index string, dependencies map[string]string) string
	lock, install           []string
	both                    []string // in one go
	env                     []string
}

func managers(t *testing.T) []manager {
	t.Helper()
	return []manager{
		{
			name: "poetry", command: command(t, "poetry"), lockFile: "poetry.lock", project: poetryProject,
			lock: []string{"lock", "-n"}, install: []string{"install", "-n", "--no-root"}, both: []string{"install", "-n", "--no-root"},
			env: []string{"POETRY_VIRTUALENVS_CREATE=false", "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring"},
		},
		{
			name: "pdm", command: command(t, "pdm"), lockFile: "pdm.lock", project: pdmProject,
			lock: []string{"lock"}, install: []string{"install", "--no-self", "--no-lock"}, both: []string{"install", "--no-self"},
			env: []string{"PDM_CHECK_UPDATE=0", "PDM_IGNORE_SAVED_PYTHON=1"},
		},
	}
}

func poetryProject(index string, dependencies map[string]string) string {
	var b strings.Builder
	b.WriteString("[tool.poetry]\nname = \"consumer\"\nversion = \"1.0.0\"\ndescription = \"\"\nauthors = []\n\n[tool.poetry.dependencies]\npython = \"^3.8\"\n")
	for name, constraint := range dependencies {
		b.WriteString(name + " = \"" + constraint + "\"\n")
	}
	b.WriteString("\n[[tool.poetry.source]]\nname = \"gate\"\nurl = \"" + index + "\"\ndefault = true\n")
	return b.String()
}

func pdmProject(index string, dependencies map[string]string) string {
	var b strings.Builder
	b.WriteString("[project]\nname = \"consumer\"\nversion = \"1.0.0\"\nrequires-python = \">=3.8\"\ndependencies = [")
	for name, constraint := range dependencies {
		b.WriteString("\"" + name + constraint + "\", ")
	}
	b.WriteString("]\n\n[[tool.pdm.source]]\nname = \"pypi\"\nurl = \"" + index + "\"\nverify_ssl = false\n")
	return b.String()
}

// venture is a project of a manager with an environment of its own.
type venture struct {
	manager
	*sandbox
	venv string
}

func newVenture(t *testing.T, m manager, index string, dependencies map[string]string) *venture {
	t.Helper()
	v := &venture{m, newSandbox(t), t.TempDir()}
	if r := play(t, v.dir, v.sandbox.env, "/usr/bin/python3", "-m", "venv", "--without-pip", v.venv); r.code != 0 {
		missing(t, "python3-venv ("+r.output+")")
	}
	v.sandbox.env = append(v.sandbox.env, append([]string{
		"VIRTUAL_ENV=" + v.venv, "PATH=" + filepath.Join(v.venv, "bin") + ":" + os.Getenv("PATH"),
	}, m.env...)...)
	write(t, v.dir, "pyproject.toml", m.project(index, dependencies))
	return v
}

func (v *venture) run(t *testing.T, args ...string) result {
	t.Helper()
	return play(t, v.dir, v.sandbox.env, append([]string{v.command}, args...)...)
}

func (v *venture) must(t *testing.T, args ...string) result {
	t.Helper()
	r := v.run(t, args...)
	if r.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", v.name, strings.Join(args, " "), r.code, r.output)
	}
	return r
}

// installed tells what is in the project's environment.
func (v *venture) installed(t *testing.T) []string {
	t.Helper()
	places, err := filepath.Glob(filepath.Join(v.venv, "lib", "python3*", "site-packages"))
	if err != nil || len(places) != 1 {
		t.Fatalf("%v %q", err, places)
	}
	return distributions(t, places[0])
}
