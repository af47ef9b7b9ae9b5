package source_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source"
	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/journal"
)

// nextOf is what an outcome or report says to do: the command in it, and whether it says that the
// run can never complete.
func nextOf(text string) (command string, never bool) {
	all := regexp.MustCompile(`ecluse [a-z]+ [a-z]+( --?[a-z-]+| [A-Z][A-Za-z_.]*)*`).FindAllString(text, -1)
	if len(all) == 1 {
		command = all[0]
	}
	return command, strings.Contains(text, record.Never)
}

// S151: the next step of every outcome is one command, and that command works; or the run can never
// complete, and then what the outcome names does.
func TestNextWorks(t *testing.T) {
	const (
		plans, approves, applies = "ecluse source plan", "ecluse source approve", "ecluse source apply"
		resumes, verifies        = "ecluse source resume", "ecluse source verify"
		resolves, ends           = "ecluse journal resolve DIR --plan", "ecluse journal resolve DIR --plan --end-wait"
		shows, withdraws         = "ecluse journal show", "ecluse journal export DIR --withdraw"
	)
	ran := func(first [3]string, more ...[3]string) func(*world) *source.Outcome {
		return func(w *world) *source.Outcome { return w.created(rules(append([][3]string{first}, more...)...)) }
	}
	// then is a run that ended, something that happens to its journal, and a resume.
	then := func(act string, happens func(w *world)) func(*world) *source.Outcome {
		return func(w *world) *source.Outcome {
			w.created(rules([3]string{"POST files", "1", act}))
			time.Sleep(2 * time.Minute)
			happens(w)
			_, out := w.resume()
			return out
		}
	}
	for _, tt := range []struct {
		name  string
		do    func(w *world) *source.Outcome
		next  string
		never bool
	}{
		{"a plan", func(w *world) *source.Outcome { _, out := w.tool().Plan(w.t.Context(), w.request()); return out }, approves, false},
		{"a request that cannot be read", func(w *world) *source.Outcome { _, out := w.tool().Plan(w.t.Context(), []byte("{")); return out }, plans, false},
		{"a service that fails while planning", func(w *world) *source.Outcome {
			w.script(rules([3]string{"GET source", "1", `{"status":500}`}))
			_, out := w.tool().Plan(w.t.Context(), w.request())
			return out
		}, plans, false},
		{"not approved", func(w *world) *source.Outcome {
			envelope, _ := w.tool().Plan(w.t.Context(), w.request())
			return w.apply(envelope)
		}, approves, false},
		{"an approval refused", func(w *world) *source.Outcome {
			envelope, _ := w.tool().Plan(w.t.Context(), w.request())
			_, out := source.Approve(envelope, func(string, string) error { return errors.New("no") })
			return out
		}, approves, false},
		{"approved", func(w *world) *source.Outcome {
			envelope, _ := w.tool().Plan(w.t.Context(), w.request())
			_, out := source.Approve(envelope, func(string, string) error { return nil })
			return out
		}, applies, false},
		{"edited", func(w *world) *source.Outcome {
			return w.apply(bytes.Replace(w.planned(), []byte("team@x"), []byte("team@y"), 1))
		}, plans, false},
		{"a local file changed", func(w *world) *source.Outcome {
			envelope := w.planned()
			w.write("b.txt", "other")
			return w.apply(envelope)
		}, plans, false},
		{"no journal named", func(w *world) *source.Outcome {
			return w.tool().Apply(w.t.Context(), w.planned(), source.Places{Receipts: w.path("receipts")})
		}, applies, false},
		{"a journal that is not empty", func(w *world) *source.Outcome {
			w.write("../journal/x", "")
			return w.apply(w.planned())
		}, applies, false},
		{"no token", func(w *world) *source.Outcome {
			envelope := w.planned()
			w.token = ""
			out := w.apply(envelope)
			w.token = "e30.e30.x"
			return out
		}, applies, false},
		{"the first read throttled", ran([3]string{"GET source", "1", throttle60}), applies, false},
		{"the first read fails", ran([3]string{"GET source", "1", `{"status":500}`}), applies, false},
		{"the creation refused", ran([3]string{"PUT source", "1", `{"status":400}`}), applies, false},
		{"the creation without an answer", ran([3]string{"PUT source", "1", `{"reset":"before-headers"}`}), plans, true},
		{"the same, performed", ran([3]string{"PUT source", "1", `{"reset":"before-headers","store":true}`}), plans, true},
		{"the creation throttled", ran([3]string{"PUT source", "1", throttle60}), plans, true},
		{"an acknowledgement without its id", ran([3]string{"PUT source", "1", `{"status":201,"store":true,"headers":{"request-id":"no good"}}`}), plans, true},
		{"the source appeared", func(w *world) *source.Outcome {
			envelope := w.planned()
			w.script(rules([3]string{"GET source", "1", `{"status":200,"body":` + otherSource + `}`}))
			return w.apply(envelope)
		}, plans, false},
		{"the source is another after its creation", ran([3]string{"GET source", "2", `{"status":200,"body":` + otherSource + `}`}), plans, true},
		{"an upload refused", ran([3]string{"POST files", "1", `{"status":400}`}), resumes, false},
		{"an upload without an answer", ran([3]string{"POST files", "1", `{"reset":"before-headers"}`}), resumes, false},
		{"the last upload without an answer", ran([3]string{"POST files", "3", `{"reset":"before-headers"}`}), plans, true},
		{"the last upload without an answer, performed", ran([3]string{"POST files", "3", `{"reset":"before-headers","store":true}`}), verifies, false},
		{"all sent, one refused", ran([3]string{"POST files", "1", `{"status":415}`}), plans, true},
		{"the final list throttled", ran([3]string{"GET files", "2", throttle60}), verifies, false},
		{"an upload throttled", ran([3]string{"POST files", "1", throttle60}), resumes, false},
		{"an upload throttled without end", ran([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"99999999999999999999"}}`}), resolves, false},
		{"rw-043 an upload throttled with an epoch", ran([3]string{"POST files", "1", `{"status":429,"headers":{"Retry-After":"1796126460"}}`}), ends, false},
		{"a permanent limit", ran([3]string{"POST files", "1", `{"status":429,"headers":{"x-ms-error-code":"QuotaExceeded","Retry-After":"1"}}`}), resumes, false},
		{"a disk that fails", func(w *world) *source.Outcome {
			envelope := w.planned()
			w.opts.Disk = func(step, name string, call func() error) error {
				if name == "result-0000.json" {
					return errDisk
				}
				return call()
			}
			out := w.apply(envelope)
			w.opts.Disk = nil
			return out
		}, shows, false},
		{"killed in a request", then(`{"status":400}`, func(w *world) {
			w.journal(func(j *journal.Journal) error {
				_, err := j.Begin(time.Now(), journal.Request{Method: "GET", URL: endpoint})
				return err
			})
		}), resolves, false},
		{"killed in a request, and the clock set back", then(throttle60, func(w *world) {
			w.journal(func(j *journal.Journal) error {
				_, err := j.Begin(time.Now(), journal.Request{Method: "GET", URL: endpoint})
				return err
			})
			c := w.clock(nil)
			c.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
			w.opts.Clock = c
		}), ends, false},
		{"the clock set back", then(throttle60, func(w *world) {
			c := w.clock(nil)
			c.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
			w.opts.Clock = c
		}), ends, false},
		{"exported", then(`{"status":400}`, func(w *world) { w.journal(exported) }), withdraws, false},
		{"exported with a result missing", then(throttle60, func(w *world) {
			must(w.t, os.Remove(w.path("journal/result-0000.json")))
			w.journal(exported)
		}), withdraws, false},
		{"put back without what was beside it", then(`{"status":400}`, func(w *world) { must(w.t, os.Remove(w.path("journal.head"))) }), withdraws, false},
		{"an entry removed", then(`{"status":400}`, func(w *world) {
			must(w.t, errors.Join(os.Remove(w.path("journal/attempt-0000.json")), os.Remove(w.path("journal/result-0000.json"))))
		}), plans, true},
		{"without acknowledgement", then(`{"status":400}`, func(w *world) { must(w.t, os.Remove(w.path("journal/source-ack.json"))) }), plans, true},
		{"locked", then(`{"status":400}`, func(w *world) {
			j, err := journal.Open(w.path("journal"), layout(), journal.Options{})
			must(w.t, err)
			w.t.Cleanup(func() { _ = j.Close() })
		}), "", false},
		{"another account", then(`{"status":400}`, func(w *world) { w.token = "e30.eyJ0aWQiOiJvdGhlciIsIm9pZCI6Im8ifQ.x" }), "account", false},
		{"the source is gone", then(`{"status":400}`, func(w *world) { w.script(rules([3]string{"GET source", "1", `{"status":404}`})) }), plans, true},
		{"the read before throttled", then(`{"status":400}`, func(w *world) { w.script(rules([3]string{"GET source", "1", throttle60})) }), resumes, false},
		{"another file on the service", then(`{"status":400}`, func(w *world) {
			w.script(rules([3]string{"GET files", "1", `{"status":200,"body":{"value":[{"id":"x","name":"other.txt"}]}}`}))
		}), resumes, false},
		{"nothing is left, one refused", then(`{"status":415}`, func(*world) {}), plans, true},
		{"verify, and one not listed", func(w *world) *source.Outcome {
			w.created(`[]`)
			w.script(rules([3]string{"GET files", "1", `{"status":200,"body":{"value":[]}}`}))
			return w.tool().Verify(w.t.Context(), w.founding(), w.path("journal"))
		}, verifies, false},
		{"verify with another plan", func(w *world) *source.Outcome {
			w.created(`[]`)
			w.extra = map[string]any{"description": "other", "name": "others"}
			other := w.planned()
			return w.tool().Verify(w.t.Context(), other, w.path("journal"))
		}, verifies, false},
		{"a continuation not approved", func(w *world) *source.Outcome {
			w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
			envelope, _ := w.resume()
			return w.continued(envelope)
		}, approves, false},
		{"a continuation with a file that was attempted", func(w *world) *source.Outcome {
			w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
			return w.continued(w.approved(w.forged([]int{0})))
		}, resumes, false},
		{"a continuation and another folder", func(w *world) *source.Outcome {
			w.created(rules([3]string{"POST files", "1", `{"status":400}`}))
			envelope, _ := w.resume()
			return w.tool().Apply(w.t.Context(), w.approved(envelope), source.Places{Journal: w.path("elsewhere")})
		}, applies, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, three, func(t *testing.T, w *world) {
				out := tt.do(w)
				w.script(`[]`)
				command, never := nextOf(out.Next)
				done := out.Status == source.StatusCompleted || out.Status == source.StatusPlanned
				switch {
				case tt.next == "account":
					if command == "" || !strings.Contains(out.Next, "sign in as the account") {
						t.Errorf("%s %s: next %q", out.Status, out.Code, out.Next)
					}
				case tt.next == "":
					if out.Next == "" && !done || command != "" || never {
						t.Errorf("%s %s: next %q", out.Status, out.Code, out.Next)
					}
				case !strings.HasPrefix(command, tt.next) || never != tt.never || strings.Contains(tt.next, "DIR") && command != tt.next:
					t.Errorf("%s %s (%s): next %q, want %q", out.Status, out.Code, out.Message, out.Next, tt.next)
				default:
					w.follows(t, out, command, never)
				}
			})
		})
	}
}

func exported(j *journal.Journal) error { _, err := j.Export(); return err }

// advised is the command that `ecluse journal show` names.
func (w *world) advised(t *testing.T, now time.Time) string {
	t.Helper()
	r, err := journal.Read(w.path("journal"), layout())
	must(t, err)
	text := record.Advise(r, record.States(r, len(three)), false, now)
	command, _ := nextOf(text)
	if command == "" {
		t.Errorf("show says %q", text)
	}
	return command
}

// journal does something with the run's journal.
func (w *world) journal(do func(*journal.Journal) error) {
	w.t.Helper()
	j, err := journal.Open(w.path("journal"), layout(), journal.Options{})
	must(w.t, err)
	must(w.t, errors.Join(do(j), j.Close()))
}

// follows does what an outcome says and reports what refuses.
func (w *world) follows(t *testing.T, out *source.Outcome, command string, never bool) {
	t.Helper()
	now := time.Now
	if w.opts.Clock.Now != nil {
		now = w.opts.Clock.Now
	}
	if m := regexp.MustCompile(`no requests before (\S+Z);`).FindStringSubmatch(out.Next); m != nil && !strings.Contains(command, "--end-wait") {
		until, err := time.Parse(time.RFC3339, m[1])
		must(t, err)
		time.Sleep(time.Until(until))
	}
	works := func(o *source.Outcome) {
		t.Helper()
		if o.Status == source.StatusBlocked || o.Status == source.StatusWaiting {
			t.Errorf("%q was followed: %s %s (%s)", out.Next, o.Status, o.Code, o.Message)
		}
	}
	dir := w.path("journal")
	switch {
	case strings.HasPrefix(command, "ecluse source plan"):
		if never || strings.Contains(out.Next, "another source name") {
			w.extra = map[string]any{"name": "another"}
		}
		_, o := w.tool().Plan(t.Context(), w.request())
		works(o)
	case strings.HasPrefix(command, "ecluse source approve"):
		// the plan is at hand; that it can be approved is shown by every other run
	case command == "ecluse source apply APPROVED.json --journal DIR --receipts DIR":
		_ = os.RemoveAll(dir) // an empty journal folder
		envelope, _ := w.tool().Plan(t.Context(), w.request())
		works(w.tool().Apply(t.Context(), w.approved(envelope), source.Places{Journal: filepath.Join(w.dir, "fresh"), Receipts: w.path("receipts")}))
	case strings.HasPrefix(command, "ecluse source apply"):
		envelope, _ := w.resume()
		works(w.continued(w.approved(envelope)))
	case strings.HasPrefix(command, "ecluse source resume"):
		_, o := w.resume()
		works(o)
	case strings.HasPrefix(command, "ecluse source verify"):
		works(w.tool().Verify(t.Context(), w.founding(), dir))
	case strings.HasPrefix(command, "ecluse journal show"):
		w.advised(t, now())
	case strings.HasPrefix(command, "ecluse journal export"):
		w.journal((*journal.Journal).Withdraw)
		_, o := w.resume()
		works(o)
	case strings.HasPrefix(command, "ecluse journal resolve"):
		if next := w.advised(t, now()); next != command {
			t.Errorf("show says %q", next)
		}
		w.journal(func(j *journal.Journal) error {
			all := j.Record().Doubts()
			if strings.Contains(command, "--end-wait") {
				all = j.Record().Contestable(now())
			}
			_, err := j.Resolve(now(), now(), j.Record().Earliest(all[0], now()), all[0],
				journal.Review{Outcome: journal.OutcomeUnknown, Approval: plan.Digest("x"), Metadata: record.ReviewMetadata()})
			return err
		})
	default:
		t.Errorf("no way to follow %q", out.Next)
	}
}

// Every code leads somewhere, in every workflow that can end with it, also where no run was begun.
func TestNextOfEveryCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/source.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "## Codes")
	table, _, _ = strings.Cut(table, "\n## ")
	codes := regexp.MustCompile("`([a-z]+(?:-[a-z]+)+)`").FindAllStringSubmatch(table, -1)
	if len(codes) < 60 {
		t.Fatalf("%d codes", len(codes))
	}
	for _, m := range codes {
		for _, workflow := range []string{"plan", "approve", "apply", "resume", "verify", "journal show", "journal resolve", "journal export", "journal import"} {
			out := source.RefusedBy(workflow, &plan.Refusal{Code: m[1], Message: "x"})
			command, _ := nextOf(out.Next)
			same := strings.Contains(out.Next, "the same command") || strings.Contains(out.Next, "on the service") || strings.Contains(out.Next, "ecluse source --help")
			if out.Next == "" || command == "" && !same {
				t.Errorf("%s, %s: next %q", workflow, m[1], out.Next)
			}
		}
	}
}
