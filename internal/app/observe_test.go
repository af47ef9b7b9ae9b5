package app

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ecluse-gate/ecluse/internal/admin"
)

// R78, R79: one line for each transition, none for a refused request, with the contract's names and
// nothing that identifies a request.
func TestCooldownLogLines(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.throttled("Retry-After", "30")
		for range 20 {
			w.get("/npm/secret-name?token=x")
		}
		time.Sleep(30 * time.Second)
		w.get("/npm/a")
		entered, recovered := w.lines("cooldown entered"), w.lines("cooldown recovered")
		if len(entered) != 1 || len(recovered) != 1 {
			t.Fatalf("%d entries, %d recoveries", len(entered), len(recovered))
		}
		for key, want := range map[string]any{
			"upstream_host": publicHost, "upstream_port": 80.0, "status": 429.0, "delay_seconds": 30.0, "hint": "seconds",
			"ceiling_seconds": 60.0, "kind": "metadata",
		} {
			if entered[0][key] != want {
				t.Errorf("%s = %v, want %v", key, entered[0][key], want)
			}
		}
		if recovered[0]["upstream_host"] != publicHost || recovered[0]["upstream_port"] != 80.0 {
			t.Errorf("recovered: %v", recovered[0])
		}
		if strings.Contains(w.log.String(), "secret-name") || strings.Contains(w.log.String(), "token") {
			t.Errorf("the log names a request:\n%s", w.log)
		}
	})
}

// R80, R82: attempts, refusals, entries and decisions, each counted once.
func TestCounters(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.withFacts()
		w.throttled("Retry-After", "30")
		w.get("/npm/b")
		w.get("/npm/b")
		w.get(fileA)
		for sample, want := range map[string]float64{
			`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="success"}`:   1,
			`ecluse_public_requests_total{host="registry.test:80",kind="metadata",outcome="throttled"}`: 1,
			`ecluse_public_requests_total{host="registry.test:80",kind="artifact",outcome="success"}`:   0,
			`ecluse_cooldown_refusals_total{host="registry.test:80",kind="metadata"}`:                   2,
			`ecluse_cooldown_refusals_total{host="registry.test:80",kind="artifact"}`:                   1,
			`ecluse_cooldown_entries_total{hint="seconds",host="registry.test:80"}`:                     1,
			`ecluse_cooldown_state{host="registry.test:80"}`:                                            1,
			`ecluse_cooldown_remaining_seconds{host="registry.test:80"}`:                                30,
			`ecluse_decisions_total{decision="unavailable",ecosystem="npm",kind="listing"}`:             3,
			`ecluse_decisions_total{decision="unavailable",ecosystem="npm",kind="artifact"}`:            1,
			`ecluse_decisions_total{decision="admit",ecosystem="npm",kind="listing"}`:                   1,
			`ecluse_http_request_duration_seconds_count{code="503",route="npm_listing"}`:                3,
			`ecluse_http_request_duration_seconds_count{code="503",route="npm_artifact"}`:               1,
		} {
			if got := w.metric(sample); got != want {
				t.Errorf("%s = %v, want %v", sample, got, want)
			}
		}
	})
}

// R83: a refused request's span shows the cause, and no client span is opened for it.
func TestRefusalTrace(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.throttled("Retry-After", "30")
		before := len(w.spans.Ended())
		w.get("/npm/a")
		ended := w.spans.Ended()[before:]
		if len(ended) != 1 || ended[0].SpanKind() != trace.SpanKindServer {
			t.Fatalf("%d spans", len(ended))
		}
		cause := ""
		for _, a := range ended[0].Attributes() {
			if a.Key == "ecluse.refusal" {
				cause = a.Value.AsString()
			}
		}
		if cause != "cooldown" {
			t.Errorf("attributes = %v", ended[0].Attributes())
		}
		if first := w.spans.Ended()[0]; first.SpanKind() != trace.SpanKindClient {
			t.Errorf("a request that was sent has no client span: %v", first.SpanKind())
		}
	})
}

// tc-072: looking changes nothing; only authorities that were asked are shown. R94: open reads as
// ceiling 60.
func TestLookingChangesNothing(t *testing.T) {
	inWorld(t, "", func(w *world) {
		if got := w.authorities(); len(got) != 0 {
			t.Errorf("authorities before any request: %v", got)
		}
		w.get("/npm/a")
		if got := w.authorities(); len(got) != 1 || got[0] != (admin.Authority{Host: publicHost, Port: 80, State: "open", Ceiling: 60}) {
			t.Errorf("open: %+v", got)
		}
		w.throttled("Retry-After", "30")
		time.Sleep(30 * time.Second)
		for range 10 {
			w.authorities()
			w.metric(`ecluse_cooldown_state{host="registry.test:80"}`)
		}
		w.want(w.get("/npm/a"), 404, -1) // it is still this request that probes
	})
}

// R90: a budget of an authority delays what is sent to it, and whoever would wait too long hears
// when to come.
func TestBudget(t *testing.T) {
	inWorld(t, "budget: {\"registry.test:80\": {rate: 0.02, burst: 1}}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.public.Publish("b", "1.0.0", longAgo, nil)
		w.want(w.get("/npm/a"), 200, -1)
		start := time.Now()
		w.want(w.get("/npm/b"), 200, -1)
		if d := time.Since(start); d != 50*time.Second {
			t.Errorf("the second request was sent after %v", d)
		}
		first := make(chan struct{})
		go func() {
			defer close(first)
			w.get("/npm/c")
		}()
		synctest.Wait()
		w.want(w.get("/npm/d"), 503, 100)
		<-first
		w.sent(3)
		if s := w.state(); s != "open" {
			t.Errorf("a budget is no cooldown, but the state is %q", s)
		}
	})
}

// R89, C52, C74: with a hold a request waits for the recovery instead of being refused, and nothing
// is sent early.
func TestHold(t *testing.T) {
	inWorld(t, "serve: {hold: 20s}", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		w.throttled("Retry-After", "15")
		start := time.Now()
		w.want(w.get("/npm/a"), 200, -1)
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("held for %v", d)
		}
		w.sent(3) // the one that met the 429 was held as well, and sent once more (R98)
		w.throttled("Retry-After", "60")
		start = time.Now()
		w.want(w.get("/npm/b"), 503, 60)
		if d := time.Since(start); d != 0 {
			t.Errorf("a wait over the hold was held for %v", d)
		}
	})
}
