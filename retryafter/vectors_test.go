package retryafter_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/retryafter"
)

type vector struct {
	ID           string   `json:"id"`
	Header       []string `json:"header"`
	ReceivedAt   string   `json:"received_at"`
	Kind         string   `json:"kind"`
	DelaySeconds *int64   `json:"delay_seconds"`
	Note         string   `json:"note"`
}

func readVectors(tb testing.TB) []vector {
	tb.Helper()
	file, err := os.Open("testdata/retry-after-vectors.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var vectors []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			tb.Fatalf("line %d: %v", len(vectors)+1, err)
		}
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	if len(vectors) != 152 {
		tb.Fatalf("%d vectors, want 152", len(vectors))
	}
	return vectors
}

// R10 R11 R14 S12: the shared vectors decide every case of the grammar.
func TestVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			received, err := time.Parse(time.RFC3339Nano, v.ReceivedAt)
			if err != nil {
				t.Fatal(err)
			}
			r := retryafter.Parse(v.Header, received)
			if r.Kind.String() != v.Kind {
				t.Fatalf("kind %v, want %s (%s)", r.Kind, v.Kind, v.Note)
			}
			got, ok := r.DelaySeconds()
			switch {
			case ok != (v.DelaySeconds != nil):
				t.Fatalf("delay %d %v, want %v (%s)", got, ok, v.DelaySeconds, v.Note)
			case ok && got != *v.DelaySeconds:
				t.Fatalf("delay %d, want %d (%s)", got, *v.DelaySeconds, v.Note)
			}
			if !ok && r.Kind == retryafter.KindSeconds && !r.Notes.Has(retryafter.NoteUnrepresentable) {
				t.Fatal("seconds without a delay must be noted as unrepresentable")
			}
			if (r.Form != retryafter.FormNone) != (r.Kind == retryafter.KindSeconds || r.Kind == retryafter.KindDate) {
				t.Fatalf("kind %v with form %v", r.Kind, r.Form)
			}
		})
	}
}
