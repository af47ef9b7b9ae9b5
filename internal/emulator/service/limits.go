package service

// limits are what a service of one tier allows (learn.microsoft.com,
// search-limits-quotas-capacity).
type limits struct {
	sources, bases int // per service
	sourcesPerBase int
	fileBytes      int64
}

const (
	mib            = 1 << 20
	maxSourceFiles = 200 // since 2026-08-01-preview
)

func tiers() map[string]limits {
	standard := func(n int) limits { return limits{sources: n, bases: n, sourcesPerBase: 10, fileBytes: 100 * mib} }
	return map[string]limits{
		"free":       {sources: 3, bases: 3, sourcesPerBase: 3, fileBytes: 50 * mib},
		"basic":      {sources: 15, bases: 15, sourcesPerBase: 10, fileBytes: 50 * mib},
		"s1":         standard(50),
		"s2":         standard(200),
		"s3":         standard(200),
		"s3hd":       {fileBytes: 100 * mib},
		"l1":         standard(10),
		"l2":         standard(10),
		"serverless": standard(30),
	}
}

func (v *Service) maxFiles() int {
	if v.options.MaxFiles > 0 {
		return v.options.MaxFiles
	}
	return maxSourceFiles
}
