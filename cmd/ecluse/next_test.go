package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/cli"
)

// Every command that an outcome names as the next step exists, with the flags that it names.
func TestNamedCommandsExist(t *testing.T) {
	named := map[string]bool{}
	command := regexp.MustCompile(`ecluse (?:source|journal) [a-z]+(?: --[a-z-]+(?: [A-Z][A-Za-z_.]*)?| [A-Z][A-Za-z_.]*)*`)
	for _, file := range []string{"next.go", "approve.go", "record/advice.go", "review/show.go"} {
		text, err := os.ReadFile("../../internal/source/" + file)
		must(t, err)
		for _, one := range command.FindAllString(string(text), -1) {
			named[one] = true
		}
	}
	if len(named) < 12 {
		t.Errorf("only %d commands: %v", len(named), named)
	}
	for one := range named {
		root := newRoot(&cli.System{Context: t.Context()})
		c, args, err := root.Find(strings.Fields(one)[1:])
		if err != nil || c.HasSubCommands() {
			t.Errorf("%s: %v", one, err)
			continue
		}
		if err := c.ParseFlags(args); err != nil {
			t.Errorf("%s: %v", one, err)
		} else if err := c.Args(c, c.Flags().Args()); err != nil {
			t.Errorf("%s: %v", one, err)
		}
	}
}
