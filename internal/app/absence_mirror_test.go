package app

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ecluse-gate/ecluse/internal/gate"
	"github.com/ecluse-gate/ecluse/internal/mirror"
)

// R57, R61, R99: a job for a version that the kept listing does not know waits out the cooldown,
// spends no attempt, and is done then.
func TestWorkerWaitsForWhatAnOldListingLacks(t *testing.T) {
	for name, c := range kept {
		t.Run(name, func(t *testing.T) {
			inHouse(t, c.yaml, func(w *world, h *house) {
				w.publishMany(1)
				w.want(w.get("/npm/left-pad"), 200, -1)
				synctest.Wait()
				c.age(w, withHouse+c.yaml)
				w.publishMany(2)
				w.throttled("Retry-After", "60")
				sent := w.public.Count()
				if o := w.expectOutcome(w.worker(), leftPad("1.0.1"), mirror.Snoozed); o.Wait < 60*time.Second || o.Wait > 75*time.Second {
					t.Errorf("the job waits %v", o.Wait)
				}
				// what mirror add asks
				_, err := w.app.Files(t.Context(), "npm", "left-pad", "1.0.1")
				if wait, ok := errors.AsType[*gate.Unavailable](err); !ok || !wait.Cooldown || wait.Wait != 60*time.Second {
					t.Errorf("mirror add hears %v", err)
				}
				s := w.queue(true)
				s.Offer(leftPad("1.0.1"))
				time.Sleep(59 * time.Second)
				w.sent(sent)
				st := w.queueStatus(s) // on a busy machine the queue may not have looked yet
				if st.Waiting+st.Ready+st.Running != 1 || len(st.WaitingJobs) > 0 && st.WaitingJobs[0].Attempts != 0 {
					t.Errorf("during the cooldown: %+v", st)
				}
				time.Sleep(time.Minute)
				if st := w.queueStatus(s); st.Done != 1 || h.stored() != 1 {
					t.Errorf("afterwards: %+v, stored %d", st, h.stored())
				}
				if jobs, err := w.app.Files(t.Context(), "npm", "left-pad", "1.0.1"); err != nil || len(jobs) != 1 {
					t.Errorf("mirror add hears %v, %v", jobs, err)
				}
				w.expectOutcome(w.worker(), leftPad("9.9.9"), mirror.Dropped) // it is really absent
				s.Stop(t.Context())
			})
		})
	}
}

// R92, R99, C36: nor is a job dropped while the upstream fails.
func TestWorkerKeepsAJobDuringTrouble(t *testing.T) {
	inHouse(t, "cache: {maxStale: 1h}", func(w *world, _ *house) {
		w.publishMany(1)
		w.get("/npm/left-pad")
		time.Sleep(10 * time.Second)
		w.publishMany(2)
		w.public.Always(http.StatusBadGateway)
		if o := w.expectOutcome(w.worker(), leftPad("1.0.1"), mirror.Failed); o.Final {
			t.Errorf("%+v", o)
		}
		w.public.Answer(nil)
		w.expectOutcome(w.worker(), leftPad("1.0.1"), mirror.Published)
	})
}

// R57, R99: a job is dropped for good, so nothing less than a listing that was read for it may say
// that its version is absent, however young the kept one is.
func TestWorkerBelievesNoYoungListing(t *testing.T) {
	inHouse(t, "", func(w *world, _ *house) {
		w.publishMany(1)
		w.get("/npm/left-pad")
		w.publishMany(2)
		w.want(w.get("/npm/left-pad/1.0.1"), 404, -1) // a client may ask again
		w.expectOutcome(w.worker(), leftPad("1.0.1"), mirror.Published)
		if jobs, err := w.app.Files(t.Context(), "npm", "left-pad", "1.0.1"); err != nil || len(jobs) != 1 {
			t.Errorf("mirror add hears %v, %v", jobs, err)
		}
	})
}
