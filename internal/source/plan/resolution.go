package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/internal/visible"
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
	// Evidence is set when the statement ends a restriction before its time.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Evidence is what a contested restriction says, for the reader; the digest in the request binds
// it.
type Evidence struct {
	Entry              string `json:"entry"`
	ReceivedAtUTC      *int64 `json:"received_at_utc"`
	NotBeforeUTC       *int64 `json:"not_before_utc"`
	ServerDelaySeconds *int64 `json:"server_delay_seconds"`
}

// Doubt names the request that the statement is about.
type Doubt struct {
	Reason        string  `json:"reason"`
	Method        string  `json:"method"`
	URLDigest     string  `json:"url_digest"`
	Nonce         *string `json:"nonce"`
	Attempt       *string `json:"attempt"`
	AttemptDigest *string `json:"attempt_digest"`
	// Restriction is the digest of the restriction that the statement ends, if it is about one.
	Restriction *string `json:"restriction,omitempty"`
}

func (r *Resolution) check() error {
	switch {
	case !strictjson.IsDigest(r.JournalDigest):
		return refuse(CodeEnvelope, "journal_digest", "must be sha256: and 64 hexadecimal digits")
	case (r.Request.Restriction == nil) != (r.Evidence == nil):
		return refuse(CodeEnvelope, "evidence", "belongs to a statement about a restriction, and only to that")
	case !slices.Contains([]string{"applied", "not-applied", "unknown"}, r.Outcome):
		return refuse(CodeEnvelope, "outcome", "must be applied, not-applied or unknown")
	case r.Request.Nonce != nil && !strictjson.IsHex(*r.Request.Nonce, 32):
		return refuse(CodeEnvelope, "request.nonce", "must be 32 lower-case hexadecimal digits or null")
	case r.NotBeforeUTC-r.ReviewedAtUTC < 600:
		return refuse(CodeEnvelope, "not_before_utc", "must be at least 600 seconds after reviewed_at_utc")
	}
	return nil
}

func (r *Resolution) words(b *strings.Builder) {
	if r.Request.Restriction != nil {
		r.contests(b)
		return
	}
	fmt.Fprintf(b, "Record in the journal %s\nthe outcome of an interrupted request:\n\n", visible.Name(r.Journal))
	fmt.Fprintf(b, "  Request      %s (%s), address %s\n", visible.Name(r.Request.Method), visible.Name(r.Request.Reason), visible.Name(r.Request.URLDigest))
	if r.Request.Attempt != nil {
		fmt.Fprintf(b, "  Upload       %s: it stays unverified and is never sent again\n", visible.Name(*r.Request.Attempt))
	}
	fmt.Fprintf(b, "  Statement    %s, as of %s\n", r.Outcome, moment(&r.ReviewedAtUTC))
	fmt.Fprintf(b, "  Blocked to   %s\n\nAfter that the journal is free for the files that were never attempted.\n", moment(&r.NotBeforeUTC))
}

// contests is the statement that a restriction cannot be meant, or was received under a wrong
// clock.
func (r *Resolution) contests(b *strings.Builder) {
	e := r.Evidence
	fmt.Fprintf(b, "End in the journal %s\na restriction of the service before its time:\n\n", visible.Name(r.Journal))
	fmt.Fprintf(b, "  Restriction  %s, of a %s, address %s\n", visible.Name(e.Entry), visible.Name(r.Request.Method), visible.Name(r.Request.URLDigest))
	fmt.Fprintf(b, "  It says      received %s, no requests before %s\n", moment(e.ReceivedAtUTC), moment(e.NotBeforeUTC))
	if e.ServerDelaySeconds != nil {
		fmt.Fprintf(b, "  Delay        %d s\n", *e.ServerDelaySeconds)
	}
	statement := "the service cannot have meant this wait"
	if r.Request.Reason == "clock-before-last-receipt" {
		statement = "this machine's clock was wrong when the answer came, and is right now"
	}
	fmt.Fprintf(b, "  Statement    %s; reviewed %s\n", statement, moment(&r.ReviewedAtUTC))
	fmt.Fprintf(b, "  Blocked to   %s\n\nThe restriction stays in the journal as evidence, beside this statement.\n", moment(&r.NotBeforeUTC))
}

func moment(seconds *int64) string {
	if seconds == nil {
		return "(unknown)"
	}
	return time.Unix(*seconds, 0).UTC().Format(time.RFC3339)
}
