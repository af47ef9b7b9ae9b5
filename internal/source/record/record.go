// Package record is the meaning of a File run's journal: what each of its entries says, which
// entries fit together, and what they make of each file (spec section 14). Order, chain, marker and
// restriction belong to the journal package.
package record

import (
	"github.com/ecluse-gate/ecluse/internal/requestid"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
)

// The states of an upload.
const (
	NotAttempted = "not_attempted"
	Accepted     = "accepted"   // 200 or 201
	Rejected     = "rejected"   // 4xx but 408 and 409
	Unverified   = "unverified" // its outcome is unknown
	Reused       = "reused"     // it was on the server before, and proved; nothing was sent
)

// Run is the founding entry.
type Run struct {
	// Document is the envelope exactly as it was approved.
	Document       map[string]any `json:"document"`
	Context        plan.Context   `json:"context"`
	BackoffVersion string         `json:"backoff_version,omitempty"`
}

// SourceAck proves that this run created the source.
type SourceAck struct {
	OriginalPlanDigest string `json:"original_plan_digest"`
	SourceURL          string `json:"source_url"`
	Acknowledgement    Ack    `json:"acknowledgement"`
	// Nonce is that of the PUT's pending request, so that a crash before the marker went is seen to
	// be one after the answer.
	Nonce *string `json:"nonce,omitempty"`
}

// Ack is the answer to the PUT.
type Ack struct {
	Status       int      `json:"status"`
	RequestID    string   `json:"request_id"`
	ETagEvidence Evidence `json:"etag_evidence"`
}

// Evidence is every ETag that an answer showed (S53).
type Evidence struct {
	Body    *string  `json:"body"`
	Headers []string `json:"headers"`
}

// Attempt announces an upload.
type Attempt struct {
	OriginalPlanDigest string `json:"original_plan_digest"`
	RecordDigest       string `json:"record_digest"`
	CreationAckDigest  string `json:"creation_ack_digest"`
}

// RetryAttempt announces the one repetition that a received 429 allows (S80-S86).
type RetryAttempt struct {
	OriginalPlanDigest   string `json:"original_plan_digest"`
	RecordDigest         string `json:"record_digest"`
	CreationAckDigest    string `json:"creation_ack_digest"`
	RejectedResultDigest string `json:"rejected_result_digest"`
}

// Result is the outcome of an attempt.
type Result struct {
	Upload    string  `json:"upload"`
	Status    *int    `json:"status"`
	RequestID *string `json:"request_id"`
	FileID    *string `json:"file_id"`
	FileProof *Proof  `json:"file_proof"`
	// Nonce is that of the pending request which this result finishes, null in a journal from
	// before it was recorded.
	Nonce *string `json:"nonce"`
	// ThrottleEvent is the digest of the restriction that this 429 brought.
	ThrottleEvent *string `json:"throttle_event"`
}

// Proof says that the answer itself showed the file as approved.
type Proof struct {
	FileID       string `json:"file_id"`
	RecordDigest string `json:"record_digest"`
}

// SafeID is the form of a request id that may be kept (S36) and of a file id that may be trusted
// (S67).
func SafeID(s string) bool { return requestid.Safe(s) }

// Verdict is the state that a status alone gives an upload (S77, S78); nil means that there was no
// answer.
func Verdict(status *int) string {
	switch {
	case status == nil:
		return Unverified
	case *status == 200 || *status == 201:
		return Accepted
	case *status >= 400 && *status < 500 && *status != 408 && *status != 409:
		return Rejected
	}
	return Unverified
}

// Value is the one ETag on which all evidence agrees, "" without evidence; see search.ETagEvidence.
func (e Evidence) Value() (string, error) {
	return search.ETagEvidence{Body: e.Body, Headers: e.Headers}.Value()
}
