package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// Resolution is an operator's statement about a request whose end a journal does not know (S151).
type Resolution struct {
	Kind          string `json:"kind"`
	Journal       string `json:"journal"`
	JournalDigest string `json:"journal_digest"`
	Request       Doubt  `json:"request"`
	// Outcome is what the operator found out: applied, not-applied or unknown.
	Outcome string `json:"outcome"`
	// ReviewedAtUTC is when the operator looked; NotBeforeUTC, at least 600 s later, is when the
	// journal may be used again.
	ReviewedAtUTC int64 `json:"reviewed_at_utc"`
	NotBeforeUTC  int64 `json:"not_before_utc"`
}

// Doubt names the request that the statement is about.
type Doubt struct {
	Reason        string  `json:"reason"`
	Method        string  `json:"method"`
	URLDigest     string  `json:"url_digest"`
	Nonce         *string `json:"nonce"`
	Attempt       *string `json:"attempt"`
	AttemptDigest *string `json:"attempt_digest"`
}

func (r *Resolution) check() error {
	switch {
	case !strictjson.IsDigest(r.JournalDigest):
		return refuse(CodeEnvelope, "journal_digest", "must be sha256: and 64 hexadecimal digits")
	case !slices.Contains([]string{"applied", "not-applied", "unknown"}, r.Outcome):
		return refuse(CodeEnvelope, "outcome", "must be applied, not-applied or unknown")
	case r.NotBeforeUTC-r.ReviewedAtUTC < 600:
		return refuse(CodeEnvelope, "not_before_utc", "must be at least 600 seconds after reviewed_at_utc")
	}
	return nil
}

func (r *Resolution) words(b *strings.Builder) {
	fmt.Fprintf(b, "Record in the journal %s\nthe outcome of an interrupted request:\n\n", r.Journal)
	fmt.Fprintf(b, "  Request      %s (%s), address %s\n", r.Request.Method, r.Request.Reason, r.Request.URLDigest)
	if r.Request.Attempt != nil {
		fmt.Fprintf(b, "  Upload       %s: it stays unverified and is never sent again\n", *r.Request.Attempt)
	}
	fmt.Fprintf(b, "  Statement    %s, as of %s\n", r.Outcome, time.Unix(r.ReviewedAtUTC, 0).UTC().Format(time.RFC3339))
	fmt.Fprintf(b, "  Blocked to   %s\n\nAfter that the journal is free for the files that were never attempted.\n", time.Unix(r.NotBeforeUTC, 0).UTC().Format(time.RFC3339))
}
