package gatecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	adminapi "github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/cli"
)

func newStatus(sys *cli.System) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the authorities and caches of a running gate",
		Long: "Asks the admin listener of a running gate which upstream authorities it knows, their state, and how long\n" +
			"a cooldown still lasts. Read-only.",
		Args: cobra.NoArgs,
	}
	admin := c.Flags().String("admin", "http://127.0.0.1:4874", "`URL` of the gate's admin listener")
	tokenFile := c.Flags().String("token-file", "", "`FILE` with the token of the setting admin.tokenFile")
	asJSON := c.Flags().Bool("json", false, "print the response of the status API")
	watch := c.Flags().Bool("watch", false, "show it again every second until interrupted")
	c.RunE = func(c *cobra.Command, _ []string) error {
		token, err := readToken(*tokenFile)
		if err != nil {
			return err
		}
		show := func() error { return showStatus(c.Context(), sys.Stdout, *admin, token, *asJSON) }
		if !*watch {
			return show()
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if cli.IsTerminal(sys.Stdout) {
				fmt.Fprint(sys.Stdout, "\033[H\033[2J")
			}
			if err := show(); err != nil {
				return err
			}
			select {
			case <-tick.C:
			case <-c.Context().Done():
				return c.Context().Err()
			}
		}
	}
	cli.ExitCodes(c, cli.Done, cli.Failed, cli.Usage, cli.Interrupted)
	return c
}

// maxStatus bounds the answer of the status API.
const maxStatus = 4 << 20

func showStatus(ctx context.Context, w io.Writer, admin, token string, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := askAdmin(ctx, admin, token, "/api/v1/authorities")
	if err != nil {
		return err
	}
	var rows []adminapi.Authority
	if err := json.Unmarshal(body, &rows); err != nil {
		return fmt.Errorf("ask the gate at %s: invalid status in its response: %v", admin, err)
	}
	if asJSON {
		_, err := w.Write(body)
		return err
	}
	if err := writeStatus(w, rows); err != nil {
		return err
	}
	if body, err = askAdmin(ctx, admin, token, "/api/v1/queue"); err != nil {
		return err
	}
	var queue adminapi.Queue
	if err := json.Unmarshal(body, &queue); err != nil {
		return fmt.Errorf("ask the gate at %s: invalid queue in its response: %v", admin, err)
	}
	return writeQueue(w, queue)
}

// writeQueue shows the mirror's queue, where there is one.
func writeQueue(w io.Writer, q adminapi.Queue) error {
	if !q.Enabled {
		return nil
	}
	fmt.Fprintf(w, "\nmirror queue (%s): ready %d, running %d, waiting %d, done %d, dead %d\n", q.Store, q.Ready, q.Running, q.Waiting, q.Done, q.Dead)
	if q.Lost > 0 {
		fmt.Fprintf(w, "files served to clients and not queued for mirroring: %d; they will be queued when requested again\n", q.Lost)
	}
	for _, e := range q.DeadJobs {
		fmt.Fprintf(w, "dead job %d: %s: %s\n", e.ID, e.Job, e.Reason)
	}
	for _, e := range q.DroppedJobs {
		fmt.Fprintf(w, "dropped job %d: %s: %s\n", e.ID, e.Job, e.Reason)
	}
	return nil
}

// readToken reads the file that --token-file names; no name, no token.
func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--token-file: %v", err)}
	}
	return strings.TrimSpace(string(text)), nil
}

// withToken puts the token of the admin listener on a request, if there is one.
func withToken(req *http.Request, token string) *http.Request {
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// refused is what an answer of the admin listener other than 200 comes to.
func refused(admin, status string, body []byte) error {
	text, _, _ := strings.Cut(string(body), "\n")
	return fmt.Errorf("ask the gate at %s: it answered %s: %.200q", admin, status, text)
}

// askAdmin reads one answer of the admin listener.
func askAdmin(ctx context.Context, admin, token, path string) ([]byte, error) {
	at := strings.TrimSuffix(admin, "/")
	if _, err := url.Parse(at); err != nil {
		return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--admin %s: %v", admin, err)}
	}
	got, err := adminGet(ctx, at, token, path, maxStatus)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the gate at %s: %v; is it running, and is --admin its admin address?", admin, err)
	case got.code != http.StatusOK:
		return nil, refused(admin, got.status, got.body)
	}
	return got.body, nil
}

func writeStatus(w io.Writer, rows []adminapi.Authority) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no public upstream has been contacted yet")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "AUTHORITY\tSTATE\tSECONDS LEFT\tCEILING\tREFUSED")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s:%d\t%s\t%.0f\t%.0f\t%d\n", r.Host, r.Port, r.State, r.Remaining, r.Ceiling, r.Refused)
	}
	return tw.Flush()
}
