package gatecmd

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ecluse-gate/ecluse/internal/cli"
	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/mirror/lockfile"
	"github.com/ecluse-gate/ecluse/internal/visible"
)

// past is a place that a lock file leads to, past the gate.
type past struct {
	place, example string
	packages       int
}

// checkLockfiles lists what the clients of lock files would fetch past the gate. Any of it makes
// the exit code that of a refusal.
func checkLockfiles(sys *cli.System, cfg *config.Config, formats []lockfile.Format, files []string) error {
	found := false
	for _, name := range files {
		format, err := lockfile.Find(formats, name)
		if err != nil {
			return &cli.ExitError{Code: cli.Refused, Err: err}
		}
		l, err := readLockfile(formats, name)
		if err != nil {
			return err
		}
		list := pastTheGate(l.Addresses, gateHosts(cfg), format.Replaces)
		if len(list) == 0 {
			fmt.Fprintf(sys.Stdout, "%s: nothing goes past the gate\n", visible.Text(name))
			continue
		}
		found = true
		fmt.Fprintf(sys.Stdout, "%s: %s\n", visible.Text(name), format.Direct)
		w := tabwriter.NewWriter(sys.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  HOST\tENTRIES\tFOR EXAMPLE")
		for _, p := range list {
			fmt.Fprintf(w, "  %s\t%d\t%s\n", visible.Text(p.place), p.packages, visible.Text(p.example))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if found {
		return &cli.ExitError{Code: cli.Refused}
	}
	return nil
}

// gateHosts are where clients reach the gate.
func gateHosts(cfg *config.Config) []string {
	hosts := []string{strings.ToLower(cfg.Listen)}
	if cfg.PublicURL != nil {
		hosts = append(hosts, strings.ToLower(cfg.PublicURL.Host))
	}
	return hosts
}

// pastTheGate groups the addresses that neither lead to the gate nor are replaced by the client,
// the most frequent first.
func pastTheGate(all []lockfile.Address, gate []string, replaced func(host string) bool) []past {
	places := map[string]*past{}
	for _, a := range all {
		u, err := url.Parse(a.URL)
		if err != nil || u.Scheme == "" || u.Scheme == "file" || u.Scheme == "link" {
			continue // a place on this machine
		}
		place := strings.ToLower(u.Host)
		switch {
		case place == "":
			place = u.Scheme + ":"
		case slices.Contains(gate, place), replaced != nil && replaced(place):
			continue
		}
		if places[place] == nil {
			places[place] = &past{place: place, example: a.Package}
		}
		places[place].packages++
	}
	var list []past
	for _, p := range places {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b past) int {
		return cmp.Or(cmp.Compare(b.packages, a.packages), strings.Compare(a.place, b.place))
	})
	return list
}
