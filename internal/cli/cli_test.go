package cli_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

func TestNewSystemIsTheProcess(t *testing.T) {
	t.Setenv("ECLUSE_CLI_TEST", "here")
	sys, stop := cli.New()
	defer stop()
	if !slices.Contains(sys.Environ, "ECLUSE_CLI_TEST=here") {
		t.Error("the environment of the process is missing")
	}
	if sys.Context.Err() != nil {
		t.Error("the context has ended before any signal")
	}
	if sys.Stdout != os.Stdout || sys.Stderr != os.Stderr || sys.Stdin != os.Stdin {
		t.Error("the streams are not those of the process")
	}
}

func TestFirstSignalEndsTheContext(t *testing.T) {
	sys, stop := cli.New()
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-sys.Context.Done()
}

func TestIsTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if cli.IsTerminal(f) || cli.IsTerminal(new(bytes.Buffer)) || cli.IsTerminal(nil) {
		t.Error("a file, a buffer and nothing were taken for terminals")
	}
}

// The codes are part of the contract with scripts that call us.
func TestCodes(t *testing.T) {
	for _, code := range []cli.Code{0, 1, 2, 3, 4, 64, 130} {
		if code.Meaning() == "" {
			t.Errorf("code %d means nothing", code)
		}
	}
	if m := cli.Code(5).Meaning(); m != "" {
		t.Errorf("5 is none of our codes, yet means %q", m)
	}
}

func TestDescribe(t *testing.T) {
	text := cli.Describe(cli.Done, cli.Usage)
	if !strings.Contains(text, "  0   done\n") || !strings.Contains(text, "  64  wrong usage\n") || strings.Contains(text, "130") {
		t.Errorf("unexpected block:\n%s", text)
	}
}

// The codes stand at the end of the help, below the long text or, without one, the short.
func TestExitCodes(t *testing.T) {
	for _, c := range []*cobra.Command{{Short: "Do it", Long: "Does it.\n"}, {Short: "Does it."}} {
		cli.ExitCodes(c, cli.Done, cli.Usage)
		if want := "Does it.\n\n" + cli.Describe(cli.Done, cli.Usage); c.Long != want {
			t.Errorf("got %q, want %q", c.Long, want)
		}
	}
}

func TestExitErrorKeepsItsCause(t *testing.T) {
	err := error(cli.Exit(cli.Refused, fs.ErrNotExist))
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != fs.ErrNotExist.Error() {
		t.Errorf("the cause is lost: %v", err)
	}
	exit, ok := errors.AsType[*cli.ExitError](err)
	if !ok || exit.Code != cli.Refused {
		t.Errorf("the code is lost: %v", err)
	}
	if cli.Exit(cli.Waiting, nil).Error() == "" {
		t.Error("an exit without a cause has no text")
	}
}
