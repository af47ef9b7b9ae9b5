// Package gatecmd has the sub-commands of the gate: those that run it, ask a running one, check its
// configuration, and manage its mirror jobs.
package gatecmd

import (
	"github.com/spf13/cobra"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/serving"
)

// Commands makes the sub-commands in the order in which help shows them. version is what a running
// gate says of itself, and ecosystems are all that it can serve.
func Commands(sys *cli.System, version string, ecosystems serving.Ecosystems) []*cobra.Command {
	return []*cobra.Command{
		newServe(sys, version, ecosystems), newCheck(sys, ecosystems), newExplain(sys, version, ecosystems), newStatus(sys),
		newMirror(sys, version, ecosystems),
	}
}
