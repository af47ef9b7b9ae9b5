package admin

import "github.com/ecluse-gate/ecluse/internal/advisory"

// advisoryStatus is how things stand with the data of one ecosystem, for the admin API.
type advisoryStatus struct {
	Ecosystem string `json:"ecosystem"`
	Loaded    bool   `json:"loaded"`
	Records   int    `json:"records"`
	Checked   string `json:"checked"`
	Error     string `json:"error,omitempty"`
}

// advisories is the advisory data; nil while there is no source.
func (a *Admin) advisories() *advisory.Store {
	if a.opts.Advisories == nil {
		return nil
	}
	return a.opts.Advisories()
}

func (a *Admin) advisoryStatus() []advisoryStatus {
	out := []advisoryStatus{}
	store := a.advisories()
	if store == nil {
		return out
	}
	for _, st := range store.Status() {
		row := advisoryStatus{Ecosystem: st.Ecosystem, Loaded: st.Loaded, Records: st.Records}
		if !st.Checked.IsZero() {
			row.Checked = st.Checked.UTC().Format("2006-01-02T15:04:05Z")
		}
		if st.Err != nil {
			row.Error = st.Err.Error()
		}
		out = append(out, row)
	}
	return out
}
