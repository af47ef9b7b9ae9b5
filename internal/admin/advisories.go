package admin

// advisoryStatus is how things stand with the data of one ecosystem, for the admin API.
type advisoryStatus struct {
	Ecosystem string `json:"ecosystem"`
	Loaded    bool   `json:"loaded"`
	Records   int    `json:"records"`
	Checked   string `json:"checked"`
	Error     string `json:"error,omitempty"`
}

func (a *Admin) advisoryStatus() []advisoryStatus {
	out := []advisoryStatus{}
	if a.opts.Advisories == nil {
		return out
	}
	for _, st := range a.opts.Advisories.Status() {
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
