package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/server"
)

// Explanation is one row of GET /api/v1/explain and of ecluse explain --json.
type Explanation struct {
	Package string `json:"package"`
	Version string `json:"version"`
	File    string `json:"file,omitempty"`
	Admit   bool   `json:"admitted"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	// AdmittedAt is the time from which the version will be admitted, in RFC 3339, when time alone
	// decides; else null.
	AdmittedAt *string `json:"admitted_at"`
	// From is "private" or "public", the registry that has the version.
	From string `json:"from,omitempty"`
	// Hidden reports a public version that clients do not meet, since the private registry has it.
	Hidden bool `json:"hidden,omitempty"`
	// Error says why nothing is known of the package now; the fields of a verdict are then empty.
	Error string `json:"error,omitempty"`
}

// Explain judges "ECOSYSTEM:NAME[@VERSION]" as the mounts do.
func (a *Admin) Explain(ctx context.Context, text string) ([]Explanation, error) {
	g, name, version, err := a.target(text)
	if err != nil {
		return nil, err
	}
	found, err := g.Explain(ctx, name, version, a.opts.Credential(g.Ecosystem()))
	if err != nil {
		return nil, err
	}
	out := make([]Explanation, 0, len(found))
	for _, e := range found {
		row := Explanation{Package: g.Ecosystem() + ":" + name, Version: e.Version, File: e.File, Admit: e.Admit, Rule: e.Rule, Reason: e.Reason, From: "public", Hidden: e.Hidden}
		if e.Private {
			row.From = "private"
		}
		if !e.AdmittedAt.IsZero() {
			at := e.AdmittedAt.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
			row.AdmittedAt = &at
		}
		out = append(out, row)
	}
	return out, nil
}

// BadTarget is an argument that names no package.
type BadTarget struct {
	text  string
	known []string // the names of the ecosystems
	off   string   // the ecosystem whose mount is off; empty for none
}

// Error implements error.
func (e *BadTarget) Error() string {
	if e.off != "" {
		return fmt.Sprintf("%q cannot be judged: mounts.%s is switched off", e.text, e.off)
	}
	message := fmt.Sprintf("%q is not a package: write %s:NAME or %[2]s:NAME@VERSION", e.text, e.known[0])
	if len(e.known) > 1 {
		message += ", or the same with " + strings.Join(e.known[1:], ": or ") + ":"
	}
	return message
}

func (a *Admin) target(text string) (g *gate.Gate, name, version string, err error) {
	bad := &BadTarget{text: text, known: a.opts.Mounts.Ecosystems().Known().Names()}
	ecosystem, rest, ok := strings.Cut(text, ":")
	if i := strings.LastIndexByte(rest, '@'); i > 0 {
		rest, version = rest[:i], rest[i+1:]
		ok = ok && version != ""
	}
	m := a.opts.Mounts.Named(ecosystem)
	if !ok || m.Name == "" {
		return nil, "", "", bad
	}
	if name, err = m.ParseName(rest); err != nil {
		return nil, "", "", bad
	}
	if m.Gate == nil {
		bad.off = ecosystem
		return nil, "", "", bad
	}
	return m.Gate, name, version, nil
}

func (a *Admin) explainAPI(w http.ResponseWriter, r *http.Request) {
	rows, err := a.Explain(r.Context(), r.URL.Query().Get("package"))
	if err == nil {
		writeJSON(w, rows)
	} else if bad, ok := errors.AsType[*BadTarget](err); ok {
		badRequest(w, bad.Error())
	} else {
		server.WriteError(w, err)
	}
}

// badRequest refuses what was asked.
func badRequest(w http.ResponseWriter, message string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(server.ErrorBody(message))
}
