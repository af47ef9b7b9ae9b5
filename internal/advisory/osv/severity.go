package osv

import (
	"strconv"
	"strings"

	gocvss20 "github.com/pandatix/go-cvss/20"
	gocvss30 "github.com/pandatix/go-cvss/30"
	gocvss31 "github.com/pandatix/go-cvss/31"
	gocvss40 "github.com/pandatix/go-cvss/40"
)

// highest is the score of a severity that is given and cannot be read.
const highest = 10.0

// score is the highest score that a record gives; false if it gives none. Where no vector can be
// read, the label speaks, with the lowest score that its rating has in CVSS.
func score(severities []severity, label string) (float64, bool) {
	best, scored, garbled := 0.0, false, false
	for _, s := range severities {
		// other scales say nothing that a CVSS threshold could be compared with
		if !strings.HasPrefix(s.Type, "CVSS_") {
			continue
		}
		n, ok := vectorScore(s.Score)
		if !ok {
			garbled = true
			continue
		}
		best, scored = max(best, n), true
	}
	if scored {
		return best, true
	}
	if n, ok := labelScore(label); ok {
		return n, true
	}
	return highest, garbled
}

// vectorScore is the base score of a vector of CVSS 2.0, 3.0, 3.1 or 4.0, or of a plain number.
func vectorScore(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "CVSS:4.0"):
		if v, err := gocvss40.ParseVector(text); err == nil {
			return v.Score(), true
		}
	case strings.HasPrefix(text, "CVSS:3.1"):
		if v, err := gocvss31.ParseVector(text); err == nil {
			return v.BaseScore(), true
		}
	case strings.HasPrefix(text, "CVSS:3.0"):
		if v, err := gocvss30.ParseVector(text); err == nil {
			return v.BaseScore(), true
		}
	default:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n, n >= 0 && n <= 10
		}
		if v, err := gocvss20.ParseVector(strings.Trim(text, "()")); err == nil {
			return v.BaseScore(), true
		}
	}
	return 0, false
}

// labelScore is the lower end of a qualitative rating (CVSS v3.1, section 5).
func labelScore(label string) (float64, bool) {
	switch strings.ToUpper(label) {
	case "LOW":
		return 0.1, true
	case "MODERATE", "MEDIUM":
		return 4, true
	case "HIGH":
		return 7, true
	case "CRITICAL":
		return 9, true
	}
	return 0, false
}
