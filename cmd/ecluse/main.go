// Command ecluse is a policy gate in front of package registries, and a careful loader of knowledge
// sources: see README.md.
package main

import (
	"os"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

func main() { os.Exit(mainCode()) }

func mainCode() int {
	sys, stop := cli.New()
	defer stop()
	return run(sys)
}
