package source

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/recovery"
)

// Codes of this package. Those of the packages below are passed on as they are.
const (
	codeDrift              = "definition-drift"
	codeInventoryDrift     = "server-inventory-drift"
	codeServerConflict     = "server-inventory-conflict"
	codeRecordConflict     = "file-record-conflict"
	codeDuplicateRecord    = "duplicate-file-record"
	codeReusedUpload       = "reused-source-upload-forbidden"
	codeReadbackMismatch   = "readback-mismatch"
	codeMetadataUnverified = "upload-metadata-unverified"
	codeQuota              = "quota-exhausted"
	codeRetryConflict      = "file-upload-retry-conflict"
	codeRetryUnproven      = "file-upload-retry-safety-unproven"
	codeSourceDrift        = "file-upload-source-drift"
	codeContextDrift       = "file-upload-context-drift"
	codePlanDrift          = "file-upload-plan-drift"
	codeReplay             = "file-upload-replay-forbidden"
	codeUploadApproval     = "file-upload-approval-missing"
	codeUploadInput        = "file-upload-input-invalid"
	codeNothingEligible    = "file-upload-nothing-eligible"
	codeIncomplete         = "file-verification-incomplete"
	codeListLimit          = "file-list-limit-exceeded"
	codeListTimeout        = "file-list-timeout"
	codeReceiptRequired    = "file-creation-receipt-required"
	codeJournalRequired    = "file-upload-receipt-required"
	codeDirConflict        = "file-receipt-directory-conflict"
	codeProvenance         = "file-upload-provenance-missing"
	codeWaiting            = "file-upload-backoff-waiting"
	codeUnresolved         = "file-upload-backoff-unresolved"
	codeLimit              = "file-upload-backoff-limit"
	codeExists             = "file-upload-journal-exists"
	codeLocked             = string(journal.CodeLocked)
	codeRefused            = "approval-refused"
	codeUnsupported        = plan.CodeUnsupported
	codeOwnership          = "ownership-unproven"
	codeCreationVersion    = "creation-version-unproven"
	codeAbsence            = "absence-unverified"
	codeDeleteAmbiguous    = "delete-outcome-ambiguous"
	codeNotSent            = "upload-not-sent"
	codeInterrupted        = "interrupted"
	codeProgress           = "progress-output-failed"
	codeInternal           = "internal-error"
)

// failure is why a run is not done.
type failure struct {
	code, field, message string
	status               int
	requestID            string
	// ambiguous says that a write may have happened.
	ambiguous bool
	// blockedAt is "local-persistence" when a record could not be written, whatever came first
	// (S104).
	blockedAt string
	// restriction is set when a journal refused a request.
	restriction *journal.Status
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(code, message string) *failure { return &failure{code: code, message: message} }

// explain turns any error of the packages below into a failure. What happened first is what is
// reported (S29, S90).
func explain(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if r, ok := errors.AsType[*plan.Refusal](err); ok {
		return &failure{code: r.Code, field: r.Field, message: r.Error()}
	}
	if c, ok := errors.AsType[*corpus.Error](err); ok {
		field := "local_root"
		if c.Path != "" {
			field = "paths"
		}
		return &failure{code: c.Code, field: field, message: c.Error()}
	}
	if s, ok := errors.AsType[*search.Error](err); ok {
		return explainSearch(s)
	}
	if f := explainLocal(err); f != nil {
		return f
	}
	if s, ok := errors.AsType[*recovery.Stop](err); ok {
		return fail(string(s.Code), bare(string(s.Code), s))
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fail(codeInterrupted, "interrupted")
	}
	return fail(codeInternal, err.Error())
}

// explainLocal is about what stands on this machine's disk, nil for other errors.
func explainLocal(err error) *failure {
	if j, ok := errors.AsType[*journal.Error](err); ok {
		return &failure{code: j.FullCode(), field: j.Entry, message: bare(j.FullCode(), j), restriction: j.Status}
	}
	if d, ok := errors.AsType[*durable.Error](err); ok {
		return fail(string(d.Code), bare(string(d.Code), d))
	}
	return nil
}

// unrecorded is what could not be written to this machine's disk when a request had ended, nil when
// all could: an outcome that names the request names that too.
func unrecorded(err error) *failure {
	s, ok := errors.AsType[*search.Error](err)
	if !ok || s.Persistence == nil {
		return nil
	}
	return explain(s.Persistence)
}

// bare is the text of an error without the code in front, which the outcome carries by itself.
func bare(code string, err error) string { return strings.TrimPrefix(err.Error(), code+": ") }

func explainSearch(s *search.Error) *failure {
	if s.Code == search.CodeNotRecorded || s.Code == search.CodePersistence {
		cause := s.Persistence
		if cause == nil {
			cause = s.Err
		}
		if f := explainLocal(cause); f != nil {
			f.status, f.requestID, f.ambiguous = s.Status, s.RequestID, s.Ambiguous
			if f.restriction == nil {
				f.blockedAt = "local-persistence"
			}
			return f
		}
	}
	f := &failure{
		code: s.Code, message: s.Error(), status: s.Status, requestID: s.RequestID, ambiguous: s.Ambiguous,
	}
	if s.Persistence != nil {
		f.blockedAt = "local-persistence"
	}
	switch {
	case s.Permanent():
		f.code = codeQuota
		f.message = "the service reports that a permanent limit is reached (" + s.ServiceCode + "); waiting will not help: " + s.Error()
	case s.Code == search.CodeContentChanged:
		f.code = corpus.CodeDrift
	}
	return f
}

// toRecovery describes the outcome of one request to a read sequence.
func toRecovery(requestID string, err error) recovery.Outcome {
	out := recovery.Outcome{RequestID: requestID}
	s, ok := errors.AsType[*search.Error](err)
	if !ok {
		if err == nil {
			out.Status = http.StatusOK
		}
		return out
	}
	out.Status, out.RequestID, out.RetryAfter, out.PersistErr = s.Status, s.RequestID, s.RetryAfter, s.Persistence
	if s.CloseFailed {
		out.CloseErr = s
	}
	if s.Permanent() {
		out.Status = 0 // a wait would not help (S78)
	}
	return out
}
