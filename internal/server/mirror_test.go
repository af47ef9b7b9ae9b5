package server

import (
	"testing"
	"time"
)

// R57, R61: a cooldown of ten minutes and 500 jobs: nothing is sent to the authority while it cools, no job spends an attempt, and afterwards
// all are done in bounded time, the first request of all being one probe.
func TestMirrorWaitsOutACooldown(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		const jobs = 500
		w.publishMany(jobs)
		s := w.queue(true)
		cooling429(w, "600")
		w.want(w.get("/npm/left-pad"), 503, 600)
		for i := range jobs {
			s.Offer(leftPad(version(i)))
		}
		sent := w.public.Count()
		w.public.Answer(nil)
		time.Sleep(599 * time.Second)
		if n := w.public.Count(); n != sent {
			t.Errorf("%d requests were sent while the authority cooled", n-sent)
		}
		st := w.queueStatus(s)
		if st.Waiting+st.Ready+st.Running != jobs || st.Dead != 0 || st.HeartbeatAge > 30 {
			t.Errorf("during the cooldown: %+v", st)
		}
		for _, e := range st.WaitingJobs {
			if e.Attempts != 0 {
				t.Errorf("job %v spent %d attempts", e.Job, e.Attempts)
			}
		}
		time.Sleep(10 * time.Minute)
		if st = w.queueStatus(s); st.Done != jobs || h.stored() != jobs {
			t.Errorf("afterwards: %+v, stored %d", st, h.stored())
		}
		s.Stop(t.Context())
	})
}
