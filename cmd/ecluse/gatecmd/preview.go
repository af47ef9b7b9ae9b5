package gatecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	adminapi "github.com/ecluse-gate/ecluse/internal/admin"
	"github.com/ecluse-gate/ecluse/internal/config"
)

// preview asks a running gate what the rules of a configuration would change, over the documents
// that it has in memory.
func preview(ctx context.Context, w io.Writer, admin string, cfg *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	rules, err := json.Marshal(cfg.Rules)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(admin, "/")+"/api/v1/preview", bytes.NewReader(rules))
	if err != nil {
		return fmt.Errorf("--preview %s: %v", admin, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(withToken(req, cfg.AdminToken.Reveal()))
	if err != nil {
		return fmt.Errorf("ask the gate at %s: %v; is it running, and is this its admin address?", admin, err)
	}
	defer resp.Body.Close()
	var rows []adminapi.Change
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
		return refused(admin, resp.Status, body)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 256<<20)).Decode(&rows); err != nil {
		return fmt.Errorf("ask the gate at %s: %v", admin, err)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "these rules change nothing for the packages that the gate has cached")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tw, "%s@%s\t%s\n\tthen %s\n", r.Package, r.Version, r.Before, r.After)
	}
	return tw.Flush()
}
