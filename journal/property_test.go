package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
)

// Whatever a program does with a journal, in whatever order, however often it is restarted and
// whatever the clock does: a request begins only when every end that a server named has passed and
// nothing is open; and what is in memory is what is on the disk. tc-084, tc-086.
func TestAnyHistory(t *testing.T) {
	root, err := journaltest.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		h := &history{now: noon, dir: filepath.Join(root, journal.Numbered("j", n))}
		j, err := journal.Create(h.dir, layout, founding{plan}, unsynced)
		if err != nil {
			t.Fatal(err)
		}
		h.j = j
		defer func() { h.j.Close() }()
		if _, err := j.Append("source-ack.json", ack{201, "id"}); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"read":   func(t *rapid.T) { h.request(t, journal.Request{Method: "GET", URL: listURL}) },
			"upload": h.upload,
			"wait": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(-5, 100).Draw(t, "seconds")) * time.Second)
			},
			"restart": h.restart,
			"resolve": h.resolve,
			"":        h.check,
		})
	})
}

type history struct {
	j     *journal.Journal
	dir   string
	now   time.Time
	ends  []int64 // every end that was recorded
	next  int     // of the next attempt
	stuck bool    // a request was cut off
	steps int
}

// request begins a request, if it may, and ends it in one of four ways. It gives the exchange when
// the caller has to end it.
func (h *history) request(t *rapid.T, q journal.Request) (*journal.Exchange, string) {
	x, err := h.j.Begin(h.now, q)
	allowed := !h.stuck
	for _, end := range h.ends {
		allowed = allowed && h.now.Unix() >= end
	}
	if err != nil {
		if c := codeOf(err); c != "file-upload-backoff-waiting" && c != "file-upload-backoff-unresolved" {
			t.Fatalf("begin: %v", err)
		}
		return nil, "refused"
	}
	if !allowed {
		t.Fatalf("a request began at %d although %v, cut off: %v", h.now.Unix(), h.ends, h.stuck)
	}
	end := rapid.SampledFrom([]string{"done", "throttled", "cut"}).Draw(t, "end")
	switch end {
	case "throttled":
		e, err := x.Restrict(header(h.now, rapid.SampledFrom([]string{"0", "5", "60", "soon", "99999999999999999999"}).Draw(t, "field")))
		if err != nil {
			t.Fatal(err)
		}
		ev, _ := h.j.Record().Restriction(e.Digest)
		if ev.Timing.NotBeforeUTC != nil {
			h.ends = append(h.ends, *ev.Timing.NotBeforeUTC)
		} else {
			h.stuck = true
		}
	case "cut":
		h.stuck = true
	case "done":
		if q.Attempt == "" {
			if err := x.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return x, end
}

func (h *history) upload(t *rapid.T) {
	if h.next == 200 || h.stuck || h.j.Record().Gate(h.now) != nil {
		return
	}
	name := journal.Numbered("attempt", h.next)
	if _, err := h.j.Append(name, attempt{planDigest(), h.next}); err != nil {
		t.Fatal(err)
	}
	x, end := h.request(t, journal.Request{Method: "POST", URL: listURL, Attempt: name})
	r := result{Upload: "accepted", Status: new(201)}
	switch end {
	case "done":
		r.Nonce = x.Nonce()
	case "throttled":
		ev, _ := h.j.Record().RestrictionOf(name)
		r = result{"rejected", new(429), &ev.RequestID, x.Nonce(), &ev.Digest}
	default:
		h.next++
		return
	}
	if _, err := h.j.Append(journal.Numbered("result", h.next), r); err != nil {
		t.Fatal(err)
	}
	h.next++
	if end == "done" && rapid.Bool().Draw(t, "killed before the marker goes") {
		h.restart(t)
	} else if end == "done" {
		if err := x.Done(); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *history) restart(t *rapid.T) {
	_ = h.j.Close()
	var err error
	if h.j, err = journal.Open(h.dir, layout, unsynced); err != nil {
		t.Fatal(err)
	}
}

func (h *history) resolve(t *rapid.T) {
	doubts := h.j.Record().Doubts()
	if len(doubts) == 0 {
		if h.stuck {
			t.Fatal("nothing to resolve, and yet cut off")
		}
		return
	}
	end := h.now.Add(journal.ReviewDelay * time.Second)
	if _, err := h.j.Resolve(h.now, h.now, end, doubts[0], approved); err != nil {
		if codeOf(err) != invalid { // the clock may stand before an earlier receipt
			t.Fatal(err)
		}
		return
	}
	h.ends = append(h.ends, end.Unix())
	h.stuck = len(doubts) > 1
}

// check compares memory with disk.
func (h *history) check(t *rapid.T) {
	if h.steps++; h.steps%4 != 0 {
		return
	}
	_ = h.j.Close()
	onDisk, err := journal.Read(h.dir, layout)
	if err != nil {
		t.Fatalf("the journal is damaged: %v", err)
	}
	r := h.j.Record()
	if diff := cmp.Diff(r.Status(h.now, ""), onDisk.Status(h.now, "")); diff != "" || r.Digest() != onDisk.Digest() {
		t.Fatalf("memory and disk differ: %s", diff)
	}
	h.restart(t)
}
