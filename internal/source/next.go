package source

import (
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/search"
	"github.com/ecluse-gate/ecluse/internal/source/corpus"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// The commands that an outcome names as the next one.
const (
	commandPlan    = "ecluse source plan --request REQUEST.json --out PLAN.json"
	commandApprove = "ecluse source approve PLAN.json --out APPROVED.json"
	commandApply   = "ecluse source apply APPROVED.json --journal DIR --receipts DIR"
	// a continuation, whose journal is in the plan
	commandGoOn   = "ecluse source apply APPROVED.json"
	commandResume = "ecluse source resume --journal DIR --out PLAN.json"
	commandVerify = "ecluse source verify APPROVED.json --journal DIR"
	commandShow   = "ecluse journal show DIR"
)

// remedies are for codes whose remedy does not depend on what a journal says. Each names one
// command, or says "the same command".
var remedies = map[string]string{
	codeLocked:                   "another process is using this folder: wait until it ends, then run the same command again",
	string(journal.CodeFolder):   "use a folder that only you can read, below folders that no one else can write to (not /tmp), then run the same command again",
	plan.CodeApproval:            "approve it first: " + commandApprove,
	codeUploadApproval:           "approve it first: " + commandApprove,
	codeRefused:                  "to approve it after all: " + commandApprove,
	plan.CodeFingerprint:         "it was changed after it was made; make it again: " + commandPlan,
	codeUploadInput:              "the plan of a continuation says where its journal is: " + commandGoOn,
	codeReceiptRequired:          "name both folders: " + commandApply,
	codeJournalRequired:          "name both folders: " + commandApply,
	codeDirConflict:              "name two folders, neither inside the other: " + commandApply,
	codeReusedUpload:             "a source that this run did not create accepts no uploads; choose another source name: " + commandPlan,
	codeOwnership:                "there is no proof that this tool created the source as it is now, so it is not deleted; check it on the service",
	codeCreationVersion:          "there is no proof that this tool created the source as it is now, so it is not deleted; check it on the service",
	codeAbsence:                  "check the source on the service: it may exist, be deleted, or be about to be deleted",
	codeDeleteAmbiguous:          "check the source on the service: it may exist, be deleted, or be about to be deleted",
	codeUnsupported:              "this version cannot do it; ecluse source --help lists what it can",
	"journal-nothing-to-resolve": "see what holds the journal back, if anything: " + commandShow,
	"journal-resolution-drift":   "make a new statement: ecluse journal resolve DIR --plan",
	"journal-clock-behind":       "correct the clock; if it is right: ecluse journal resolve DIR --plan --end-wait",
	"journal-bundle-invalid":     "export the journal again where it is: ecluse journal export DIR --out BUNDLE",
	"output-exists":              "with another name for --out, run the same command again",
	"output-not-written":         "see to the disk, or name another place with --out; then run the same command again",
	"input-invalid":              "correct the value and run the same command again",
	codeInternal:                 "run the same command again; if that fails too, it is a fault of ecluse: please report it",
}

// starting says what to do when no journal was opened, or none was begun.
func starting(workflow string, f *failure) string {
	switch f.code {
	case "file-upload-" + string(journal.CodeInvalid):
		return record.Never + "the evidence is not valid. Keep the folder unchanged and have it reviewed, or put the newest copy back" + record.Another
	case codeProvenance:
		return record.Never + "the creation was not acknowledged in this journal. Check the source on the service" + record.Another
	case codeExists:
		return "use an empty or new folder: " + map[bool]string{true: "ecluse journal import BUNDLE --journal DIR", false: commandApply}[workflow == "journal import"]
	case codeUnresolved, codeWaiting, codeLimit, "file-upload-" + string(journal.CodeUnreadable):
		return "see what holds the journal back, and what can be done: " + commandShow
	}
	if workflow == "journal resolve" && (f.code == plan.CodeEnvelope || f.code == plan.CodeFingerprint) {
		return remedies["journal-resolution-drift"]
	}
	if text, ok := remedies[f.code]; ok {
		return text
	}
	cause := remedyOf(f)
	switch {
	case workflow == "plan", f.code == plan.CodeEnvelope:
		return cause + commandPlan
	case workflow == "apply" && (isDrift(f.code) || f.code == corpus.CodeRoot || f.code == corpus.CodePath):
		return "make a new plan: " + commandPlan
	case workflow == "apply":
		return cause + commandApply
	case workflow == "resume":
		return cause + commandResume
	case workflow == "verify":
		return cause + commandVerify
	}
	return cause + "run the same command again"
}

// remedyOf is what to do about a code before going on, "" for nothing.
func remedyOf(f *failure) string {
	switch code := f.code; {
	case code == codeQuota:
		return "raise the limit or free space on the service; then: "
	case code == codeContextDrift:
		return "sign in as the account that started the run; then: "
	case strings.HasPrefix(code, "azure-authentication-"), code == search.CodeCLIUnavailable:
		return "sign in, or name another way with --auth or --token-file; then: "
	case strings.HasPrefix(code, "local-"), code == corpus.CodeUnreadable, code == corpus.CodeSize, code == corpus.CodeCredential, code == corpus.CodeDrift:
		return "put the local files in order, as they were approved if they were; then: "
	case code == codeServerConflict:
		return "the service has a file that is not in the plan; when it is gone: "
	case code == plan.CodeRequest, code == plan.CodeSecret, code == plan.CodeEnvelope, code == search.CodeEndpointInvalid, code == search.CodeNameInvalid:
		return "correct what the field names; then: "
	case f.status >= 400 && f.status < 500 && f.status != 408 && f.status != 429:
		return "the service refused it: settle that there; then: "
	case f.restriction != nil, code == codeInterrupted:
		return ""
	}
	return "when the service answers again: "
}

// isDrift says that something is not what was approved.
func isDrift(code string) bool {
	switch code {
	case corpus.CodeDrift, codeInventoryDrift, codeDrift, codeSourceDrift, codePlanDrift, codeContextDrift:
		return true
	}
	return false
}

// next names the one command that works now, or says that the run can never complete and what can.
// wrote says that something was written or may have been.
func (s *session) next(f *failure, wrote bool) string {
	j := s.scribe.j
	switch {
	case j == nil:
		return starting(s.out.Workflow, f)
	case f.blockedAt != "" || j.Failed() != nil:
		return "a record could not be written: see to the disk, then see what was recorded and what can be done: " + commandShow
	}
	if _, ok := j.Record().Entry(record.SourceAckName); ok {
		return s.goingOn(f)
	}
	return s.startingOver(f, wrote)
}

// goingOn is about a run whose creation is acknowledged.
func (s *session) goingOn(f *failure) string {
	r := s.scribe.j.Record()
	now := s.tool.Clock.Now()
	advice := record.Advise(r, s.states(), s.looked, now)
	if strings.HasPrefix(advice, record.Never) || !r.Status(now, "").May() {
		return advice
	}
	switch f.code {
	case codeUploadApproval, codeUploadInput, plan.CodeApproval:
		return remedies[f.code]
	case codeSourceDrift, codeReadbackMismatch:
		return record.Never + "the source on the service is not what it created" + record.Another
	case codeRecordConflict, codeDuplicateRecord, codeRetryConflict, codeMetadataUnverified:
		return record.Never + "the service has a file of this run otherwise than it was approved" + record.Another
	case codePlanDrift:
		if s.out.Workflow == "verify" {
			return "give the approved plan of this journal: " + commandVerify
		}
		return advice
	case codeReplay, codeIncomplete, codeNothingEligible, codeRetryUnproven, search.CodeHTTP, search.CodeAmbiguous:
		return advice
	}
	return remedyOf(f) + advice
}

// states are those of the files, as far as this run knows.
func (s *session) states() []record.State {
	var all []record.State
	if b := s.out.FileBatch; b != nil {
		for _, f := range b.Files {
			all = append(all, record.State{Upload: f.Upload, Verification: f.Verification, Attempts: f.Attempts, Status: f.Status})
		}
		return all
	}
	if o, err := record.Open(s.scribe.j.Record()); err == nil {
		all = record.States(s.scribe.j.Record(), len(o.Plan().Files.Records))
	}
	return all
}

// startingOver is about a run whose creation is not acknowledged: its journal is never continued,
// and never used again.
func (s *session) startingOver(f *failure, wrote bool) string {
	switch {
	case f.code == codeReusedUpload:
		return remedies[f.code]
	case wrote:
		return record.Never + "the creation was not acknowledged in the journal. Check the source on the service; if it is there, delete it or choose another name" + record.Another
	case isDrift(f.code) || f.code == codeServerConflict:
		return "the state on the service is no longer what was approved; make a new plan: " + commandPlan
	}
	again := "apply the plan again, with an empty journal folder: " + commandApply
	if status := s.scribe.j.Record().Status(s.tool.Clock.Now(), ""); status.State == journal.Waiting {
		return "the service asked for no requests before " + time.Unix(*status.NotBeforeUTC, 0).UTC().Format(time.RFC3339) + "; after that " + again
	}
	return remedyOf(f) + again
}
