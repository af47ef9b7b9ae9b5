package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

// version and commit are set by the linker (`make build`); without it the build information of the
// module answers.
var version, commit string //nolint:gochecknoglobals // written by the linker only

func newVersion(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, rev := buildIdentity()
			_, err := fmt.Fprintf(sys.Stdout, "ecluse %s\ncommit %s\n%s %s/%s\n", v, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cli.ExitCodes(c, cli.Done, cli.Usage)
	return c
}

func buildIdentity() (v, rev string) {
	v, rev = version, commit
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && rev == "" {
				rev = s.Value
			}
		}
	}
	return orElse(v, "(devel)"), orElse(rev, "unknown")
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
