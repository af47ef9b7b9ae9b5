package app

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/fakenpm"
	"github.com/ecluse-gate/ecluse/internal/mirror"
	npmmirror "github.com/ecluse-gate/ecluse/internal/npm/mirrortarget"
)

// R57, R61: a cooldown of ten minutes and 500 jobs: nothing is sent to the authority while it
// cools, no job spends an attempt, and afterwards all are done in bounded time, the first request
// of all being one probe.
func TestMirrorWaitsOutACooldown(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		jobs, cooldown := 500, 600
		if slowed { // the queue looks for work every virtual second
			jobs, cooldown = 20, 60
		}
		w.publishMany(jobs)
		s := w.queue(true)
		cooling429(w, strconv.Itoa(cooldown))
		w.want(w.get("/npm/left-pad"), 503, cooldown)
		for i := range jobs {
			s.Offer(leftPad(version(i)))
		}
		sent := w.public.Count()
		// the first request afterwards takes its time, and nobody may join it
		var probes, during atomic.Int32
		w.public.Answer(func(http.ResponseWriter, *http.Request) bool {
			if probes.Add(1) == 1 {
				time.Sleep(2 * time.Second)
				during.Store(probes.Load())
			}
			return false
		})
		time.Sleep(time.Duration(cooldown-1) * time.Second)
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
		time.Sleep(time.Duration(min(cooldown/5, 120)+30) * time.Second)
		if st = w.queueStatus(s); st.Done != jobs || h.stored() != jobs {
			t.Errorf("afterwards: %+v, stored %d", st, h.stored())
		}
		if during.Load() != 1 {
			t.Errorf("%d requests were sent while the probe was under way", during.Load()-1)
		}
		s.Stop(t.Context())
	})
}

// expectOutcome runs a job once.
func (w *world) expectOutcome(worker *mirror.Worker, j mirror.Job, want mirror.Result) mirror.Outcome {
	w.t.Helper()
	o := worker.Do(w.t.Context(), j)
	if o.Result != want {
		w.t.Errorf("%v: %+v, want %s", j, o, want)
	}
	return o
}

// R58: a 429 that the worker meets is the clients' cooldown, R62: which the job waits out without
// spending an attempt; C49.
func TestWorkerMeetsA429(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(1)
		worker := w.worker()
		cooling429(w, "60")
		o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Snoozed)
		if o.Wait < 60*time.Second || o.Wait > 75*time.Second {
			t.Errorf("the job waits %v", o.Wait)
		}
		w.public.Answer(nil)
		w.want(w.get("/npm/left-pad"), 503, 60)
		w.sent(1)
		if got := w.metric(`ecluse_mirror_jobs_total{result="snoozed"}`); got != 1 {
			t.Errorf("snoozed = %v", got)
		}
		if len(h.writes()) != 0 {
			t.Errorf("written: %q", h.writes())
		}
	})
}

// R57: while clients' 429 cools the authority, the worker sends nothing to it; R59: it still looks
// at the target, and finds what is there.
func TestWorkerDuringACooldown(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(2)
		worker := w.worker()
		w.expectOutcome(worker, leftPad("1.0.0"), mirror.Published)
		cooling429(w, "60")
		time.Sleep(2 * time.Minute) // the document has expired
		w.get("/npm/left-pad")
		sent, reads := w.public.Count(), h.reads
		w.expectOutcome(worker, leftPad("1.0.1"), mirror.Snoozed)
		w.expectOutcome(worker, leftPad("1.0.0"), mirror.Present)
		w.sent(sent)
		if h.reads != reads+2 {
			t.Errorf("the target was looked at %d times, want 2", h.reads-reads)
		}
	})
}

// After a cooldown clients go first: a client that comes at the deadline is the probe, and the
// worker comes later.
func TestClientsGoBeforeTheWorker(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(3)
		s := w.queue(true)
		cooling429(w, "60")
		w.get("/npm/left-pad")
		s.Offer(leftPad("1.0.0"))
		w.public.Answer(nil)
		time.Sleep(60*time.Second + time.Millisecond)
		sent := w.public.Count()
		w.want(w.get("/npm/left-pad"), 200, -1)
		w.sent(sent + 1)
		time.Sleep(time.Minute)
		if h.stored() != 1 {
			t.Errorf("stored %d", h.stored())
		}
		s.Stop(t.Context())
	})
}

// R8: what the target answers concerns the job alone, even a 429 from the host that is the public
// authority of others.
func TestTargetsOwn429(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(2)
		worker := w.worker()
		for _, status := range []int{429, 503} {
			h.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut {
					return false
				}
				rw.Header().Set("Retry-After", "77")
				rw.WriteHeader(status)
				return true
			})
			if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Snoozed); o.Wait != 77*time.Second {
				t.Errorf("%d: the job waits %v", status, o.Wait)
			}
		}
		h.Answer(func(rw http.ResponseWriter, r *http.Request) bool { rw.WriteHeader(429); return true })
		if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Failed); o.Final {
			t.Errorf("a bare 429 is final: %+v", o)
		}
		h.Answer(nil)
		w.want(w.get("/npm/left-pad"), 200, -1)
		for _, a := range w.authorities() {
			if a.State != "open" || a.Host == houseHost {
				t.Errorf("authority %+v", a)
			}
		}
		w.expectOutcome(worker, leftPad("1.0.1"), mirror.Published)
	})
}

// R53: a throttled relay makes no job, nor does a refusal or a HEAD; a file that a client gets
// makes one.
func TestWhatIsOffered(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(1)
		s := w.queue(false)
		w.get("/npm/left-pad")
		cooling429(w, "5")
		const file = "/npm/left-pad/-/left-pad-1.0.0.tgz"
		if a := w.get(file); a.status != 429 {
			t.Fatalf("status %d", a.status)
		}
		w.get(file) // refused here
		w.public.Answer(nil)
		time.Sleep(6 * time.Second)
		w.do(http.MethodHead, file)
		time.Sleep(time.Second)
		if st := w.queueStatus(s); st.Ready+st.Unsaved != 0 {
			t.Errorf("a job was made of a refusal: %+v", st)
		}
		if got := w.metric(`ecluse_relay_anomalies_total{ecosystem="npm",kind="artifact",reason="throttled"}`); got != 1 {
			t.Errorf("throttled relays = %v", got)
		}
		w.want(w.get(file), 200, -1)
		w.get(file)
		time.Sleep(time.Second)
		if st := w.queueStatus(s); st.Ready != 1 {
			t.Errorf("want one job: %+v", st)
		}
		s.Stop(t.Context())
	})
}

// C36: a 502 of one file starts no cooldown and concerns that file alone; it is tried again, within
// bounds. C50: a 400 is not.
func TestOneBadFile(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(2)
		worker := w.worker()
		status := 502
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "1.0.0.tgz") {
				rw.WriteHeader(status)
				return true
			}
			return false
		})
		if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Failed); o.Final {
			t.Errorf("502: %+v", o)
		}
		w.expectOutcome(worker, leftPad("1.0.1"), mirror.Published)
		status = 400
		if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Failed); !o.Final {
			t.Errorf("400: %+v", o)
		}
		status = 404
		w.expectOutcome(worker, leftPad("1.0.0"), mirror.Dropped)
		if got := len(w.lines("cooldown entered")); got != 0 {
			t.Errorf("%d cooldowns", got)
		}
	})
}

// Nothing that is not the listed file is published: another content, a cut one, one over the bound,
// one that the rules deny.
func TestNothingUnverifiedIsPublished(t *testing.T) {
	inHouse(t, "rules: {no: {type: DenyByIdentity, packages: ['left-pad@1.0.3'], precedence: 900}}", func(w *world, h *house) {
		w.publishMany(4)
		worker := w.worker()
		body := []byte("not the file")
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".tgz") {
				_, _ = rw.Write(body)
				return true
			}
			return false
		})
		if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Failed); !o.Final || !strings.Contains(o.Reason, "digest") {
			t.Errorf("mismatch: %+v", o)
		}
		body = make([]byte, 2<<20)
		if o := w.expectOutcome(worker, leftPad("1.0.1"), mirror.Failed); !o.Final || !strings.Contains(o.Reason, "bytes") {
			t.Errorf("over the bound: %+v", o)
		}
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".tgz") {
				rw.Header().Set("Content-Length", "100000")
				_, _ = rw.Write(fakenpm.File("left-pad", "1.0.2")[:5000])
				panic(http.ErrAbortHandler)
			}
			return false
		})
		if o := w.expectOutcome(worker, leftPad("1.0.2"), mirror.Failed); o.Final {
			t.Errorf("a cut file: %+v", o)
		}
		w.public.Answer(nil)
		w.expectOutcome(worker, leftPad("1.0.3"), mirror.Dropped)
		if len(h.writes()) != 0 {
			t.Errorf("written: %q", h.writes())
		}
		w.expectOutcome(worker, leftPad("1.0.2"), mirror.Published)
		if got := string(h.files["left-pad@1.0.2"]); got != string(fakenpm.File("left-pad", "1.0.2")) {
			t.Errorf("the mirror holds %d other bytes", len(got))
		}
		if tags := h.tags["left-pad"]; len(tags) != 1 || tags[npmmirror.Tag] != "1.0.2" {
			t.Errorf("tags were moved: %v", tags)
		}
	})
}

// tc-080, tc-081: a write whose answer is lost is not sent again; the next run looks and finds it.
func TestLostAnswerOfTheTarget(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(1)
		worker := w.worker()
		w.expectOutcome(worker, mirror.Job{Ecosystem: "npm", Package: "left-pad", Version: "9.9.9", File: "left-pad-9.9.9.tgz"}, mirror.Dropped)
		h.mu.Lock()
		h.commitAndReset = true
		h.mu.Unlock()
		if o := w.expectOutcome(worker, leftPad("1.0.0"), mirror.Failed); o.Final {
			t.Errorf("%+v", o)
		}
		w.expectOutcome(worker, leftPad("1.0.0"), mirror.Present)
		if len(h.writes()) != 1 || h.stored() != 1 {
			t.Errorf("writes %q, stored %d", h.writes(), h.stored())
		}
	})
}

// First-party packages are never fetched from the public side, whoever asks.
func TestFirstPartyIsNotMirrored(t *testing.T) {
	inHouse(t, "", func(w *world, h *house) {
		w.public.Publish("@acme/core", "1.0.0", longAgo, nil)
		w.expectOutcome(w.worker(), mirror.Job{Ecosystem: "npm", Package: "@acme/core", Version: "1.0.0", File: "core-1.0.0.tgz"}, mirror.Dropped)
		w.sent(0)
	})
}

// GET /api/v1/queue says that there is no mirror, or shows the queue with the reasons of what waits
// and what is dead.
func TestQueueAPI(t *testing.T) {
	ask := func(w *world) string {
		rec := httptest.NewRecorder()
		w.admin.ServeHTTP(rec, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:4874/api/v1/queue", nil))
		if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		return strings.Join(strings.Fields(rec.Body.String()), " ")
	}
	inWorld(t, "", func(w *world) {
		if got := ask(w); got != `{ "enabled": false }` {
			t.Errorf("without a mirror: %s", got)
		}
	})
	inHouse(t, "", func(w *world, h *house) {
		w.publishMany(1)
		s := w.queue(true)
		h.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				http.Error(rw, "no room", http.StatusRequestEntityTooLarge)
			}
			return r.Method == http.MethodPut
		})
		w.want(w.get("/npm/left-pad/-/left-pad-1.0.0.tgz"), 200, -1)
		time.Sleep(10 * time.Second)
		got := ask(w)
		for _, want := range []string{
			`"enabled": true`, `"store": "sqlite"`, `"dead": 1`, `"waiting": 0`, `"package": "left-pad"`, `"file": "left-pad-1.0.0.tgz"`,
			`"reason": "the mirror target rejected the file with 413: no room"`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s", got, want)
			}
		}
		if lines := w.lines("mirror job is dead"); len(lines) != 1 || lines[0]["level"] != "ERROR" || lines[0]["file"] != "left-pad-1.0.0.tgz" {
			t.Errorf("alarm: %v", lines)
		}
		if w.metric(`ecluse_mirror_jobs_total{result="failed"}`) != 1 {
			t.Error("the failure is not counted")
		}
		s.Stop(t.Context())
	})
}

// R50: when the worker began the transfer that a client waits for, the throttled answer is the
// client's, as it came.
func TestWorkerLeavesTheRelayToTheClient(t *testing.T) {
	inHouse(t, "artifacts: {maxBytes: 64MiB}\n", func(w *world, h *house) {
		w.publishMany(1)
		w.get("/npm/left-pad")
		w.public.Answer(func(rw http.ResponseWriter, r *http.Request) bool {
			time.Sleep(time.Second)
			rw.Header().Set("Retry-After", "33")
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		sent := w.public.Count()
		worker := w.worker()
		outcome := make(chan mirror.Outcome)
		go func() { outcome <- worker.Do(w.t.Context(), leftPad("1.0.0")) }()
		time.Sleep(100 * time.Millisecond)
		w.want(w.get("/npm/left-pad/-/left-pad-1.0.0.tgz"), 429, 33)
		if o := <-outcome; o.Result != mirror.Snoozed || o.Wait < 33*time.Second {
			t.Errorf("the job: %+v", o)
		}
		w.sent(sent + 1)
	})
}
