package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ecluse-gate/ecluse/internal/policy"
)

// Change is one row of POST /api/v1/preview: a version whose verdict other rules would change.
type Change struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Before  string `json:"before"`
	After   string `json:"after"`
}

// maxRules bounds the rules that are posted.
const maxRules = 1 << 20

// preview answers what other rules would change, over the public documents that are in memory. It
// changes nothing.
func (a *Admin) preview(w http.ResponseWriter, r *http.Request) {
	var specs []policy.Spec
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRules))
	dec.DisallowUnknownFields()
	err := dec.Decode(&specs)
	var after *policy.Set
	if err == nil {
		after, err = policy.New(specs, a.opts.Mounts.Ecosystems().Known())
	}
	if err != nil {
		badRequest(w, "the rules cannot be read: "+err.Error())
		return
	}
	if store := a.advisories(); store != nil {
		after = after.WithAdvisories(store.Data())
	}
	rows := []Change{}
	for c := range policy.Diff(time.Now(), a.opts.Rules(), after, a.opts.Documents.Listings()) {
		rows = append(rows, Change{
			Package: c.Package.String(), Version: c.Version.Version, Before: verdictText(c.Before), After: verdictText(c.After),
		})
	}
	writeJSON(w, rows)
}

func verdictText(v policy.Verdict) string {
	if v.Admit {
		return "admitted by " + v.Rule + ": " + v.Reason
	}
	return "denied by " + v.Rule + ": " + v.Reason
}
