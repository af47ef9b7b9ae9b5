package app

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/registry/registrytest"
)

// Issue "speed": a thousand documents that were served, packed and not, stay within the configured
// budget and a fifth, although they are more than it holds. Area memory.
func TestThousandDocumentsStayWithinTheBudget(t *testing.T) {
	const documents, budget = 1000, 8 << 20
	stencil := packument.Generate("p0000", 10, 1)
	s := benchServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bytes.ReplaceAll(stencil, []byte("p0000"), []byte(strings.Trim(r.URL.Path, "/"))))
	}), "cache.maxBytes", "8MiB", "cache.diskBytes", "0")
	gate := httptest.NewServer(s.Handler())
	defer gate.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	get := func(i int, encoding string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/npm/p%04d", gate.URL, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 1000 || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, %d bytes, %v", resp.Status, n, err)
		}
	}
	get(0, "gzip") // what is made once is not the documents'
	before := registrytest.Heap()
	for i := range documents {
		get(i, "gzip")
		get(i, "identity")
	}
	grown := registrytest.Heap() - before
	_, cost := s.documents.Size()
	t.Logf("%d documents of %d bytes: %d in use, %d by the gate's own count, budget %d", documents, len(stencil), grown, cost, budget)
	if grown > budget*12/10 {
		t.Errorf("%d bytes are in use, the budget is %d", grown, budget)
	}
	if cost < budget*6/10 || cost > budget { // room is made until three quarters are taken
		t.Errorf("the gate counts %d bytes of %d: the budget is not what bounds it", cost, budget)
	}
}
