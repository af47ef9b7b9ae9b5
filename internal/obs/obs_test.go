package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// R78, R79: the entry line carries the contract's names and nothing else.
func TestEntryLine(t *testing.T) {
	var buf bytes.Buffer
	l, err := NewLogger(&buf, "json", "info", false)
	if err != nil {
		t.Fatal(err)
	}
	LogEntered(context.Background(), l, Entry{
		Host: "registry.test", Port: 443, Status: 429, Delay: 1500 * time.Millisecond,
		Hint: "date", Ceiling: time.Minute, Kind: "artifact",
	})
	var got map[string]any
	if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	want := map[string]any{
		"level": "WARN", "msg": "cooldown entered", "upstream_host": "registry.test", "upstream_port": 443.0, "status": 429.0,
		"delay_seconds": 1.5, "hint": "date", "ceiling_seconds": 60.0, "kind": "artifact",
	}
	if len(got) != len(want) {
		t.Errorf("attributes = %v", got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %v, want %v", k, got[k], v)
		}
	}
}

func TestLoggerRefusesUnknownWords(t *testing.T) {
	for _, c := range [][2]string{{"xml", "info"}, {"json", "loud"}, {"json", "info+2"}} {
		if _, err := NewLogger(&bytes.Buffer{}, c[0], c[1], false); err == nil {
			t.Errorf("format %q level %q accepted", c[0], c[1])
		}
	}
}

func TestAutoFormatFollowsTheTerminal(t *testing.T) {
	for terminal, want := range map[bool]string{true: "msg=hello", false: `"msg":"hello"`} {
		var buf bytes.Buffer
		l, _ := NewLogger(&buf, "auto", "info", terminal)
		l.Info("hello")
		if !strings.Contains(buf.String(), want) {
			t.Errorf("terminal %v: %s", terminal, buf.String())
		}
	}
}

func TestCooldownGauges(t *testing.T) {
	m := NewMetrics()
	m.WatchCooldown(func() []AuthorityState {
		return []AuthorityState{{Host: "registry.test:443", State: 1, Remaining: 90 * time.Second}}
	})
	want := `
# HELP ecluse_cooldown_remaining_seconds Seconds until the cooldown ends.
# TYPE ecluse_cooldown_remaining_seconds gauge
ecluse_cooldown_remaining_seconds{host="registry.test:443"} 90
# HELP ecluse_cooldown_state State of the authority: 0 open, 1 cooling, 2 probing, 3 due.
# TYPE ecluse_cooldown_state gauge
ecluse_cooldown_state{host="registry.test:443"} 1
`
	if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(want), "ecluse_cooldown_state", "ecluse_cooldown_remaining_seconds"); err != nil {
		t.Error(err)
	}
}
