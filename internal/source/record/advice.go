package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/ecluse-gate/ecluse/journal"
)

// The commands that advice names.
const (
	commandResume   = "ecluse source resume --journal DIR --out PLAN.json"
	commandVerify   = "ecluse source verify APPROVED.json --journal DIR"
	commandResolve  = "ecluse journal resolve DIR --plan"
	commandEndWait  = "ecluse journal resolve DIR --plan --end-wait"
	commandWithdraw = "ecluse journal export DIR --withdraw"
	commandPlan     = "ecluse source plan --request REQUEST.json --out PLAN.json"
)

// Never is how advice about a run begins that cannot be completed.
const Never = "this run can never complete: "

// Another says what can complete instead of a run that never will: nothing is ever uploaded to a
// source that stood before, so it must be another one.
const Another = "; plan another one, with another source name and an empty journal folder: " + commandPlan

// Advise says which command works now on a journal, whose files are in these states: the one that
// goes on, or the one that settles what stands against it; or that the run can never complete, and
// what can. looked says that the states are those that the service showed just now.
func Advise(r *journal.Record, files []State, looked bool, now time.Time) string {
	status := r.Status(now, "")
	contestable := r.Contestable(now)
	clock := len(contestable) > 0 && contestable[0].Reason == journal.ReasonRegression
	switch {
	case r.Exported():
		return "the journal was exported: it goes on where the bundle was imported; if the bundle was not and will not be imported, withdraw the export: " + commandWithdraw
	case r.Displaced():
		return "what was kept beside the journal folder is missing, as with a copy or an older backup; if this is the newest copy and the only one in use: " + commandWithdraw
	case status.Reason == ReasonLegacy:
		return Never + "an older version recorded a 429 without the time to wait" + Another
	case r.Full():
		return Never + "its journal is full" + Another
	case clock:
		return "an answer was received at a time that has not come yet: correct this machine's clock; if it is right now, end that restriction: " + commandEndWait
	case status.Reason == journal.ReasonClock:
		return "set this machine's clock, then: " + commandResume
	case len(r.Doubts()) > 0:
		return "find out the outcome on the service and state it: " + commandResolve
	}
	on := proceed(files, looked)
	if status.State != journal.Waiting {
		return on
	}
	until := time.Unix(*status.NotBeforeUTC, 0).UTC().Format(time.RFC3339)
	if len(contestable) > 0 {
		return fmt.Sprintf("the service asked for no requests before %s; if it cannot have meant that, end the restriction: %s", until, commandEndWait)
	}
	return fmt.Sprintf("the service asked for no requests before %s; wait until then; after that: %s", until, on)
}

// proceed is what may be done with a journal that nothing holds back.
func proceed(files []State, looked bool) string {
	has := func(is func(State) bool) bool { return slices.ContainsFunc(files, is) }
	switch {
	case has(func(s State) bool { return s.Upload == NotAttempted && s.Verification == "" }):
		return commandResume
	case has(func(s State) bool { return s.Verification == Failed && (looked || !s.Throttled()) }):
		return Never + "a file was rejected or failed, and is never sent again" + Another
	case looked && has(func(s State) bool { return s.Upload == Unverified && s.Verification != Confirmed }):
		return Never + "the outcome of an upload is unknown, the service does not show the file, and it is never sent again" + Another
	}
	return commandVerify
}
