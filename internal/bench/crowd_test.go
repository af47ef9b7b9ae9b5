package bench_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// distinctFile is 10 MB that no other package has.
func distinctFile(name string) []byte {
	return bytes.Repeat([]byte((name + "................")[:16]), 10<<16)
}

// firstBytes lets a crowd of clients ask for the same at once and gives the milliseconds until each had its first byte, sorted. Every client
// reads to the end.
func firstBytes(b *testing.B, url string, crowd int) []float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd, DisableCompression: true}}
	defer client.CloseIdleConnections()
	times := make([]float64, crowd)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range times {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
			if err != nil {
				b.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Body.Close()
			_, err = io.ReadFull(resp.Body, make([]byte, 1))
			times[i] = float64(time.Since(start).Microseconds()) / 1e3
			rest, cerr := io.Copy(io.Discard, resp.Body)
			if err != nil || cerr != nil || resp.StatusCode != http.StatusOK || rest != 10<<20-1 {
				b.Errorf("%s, %d bytes, %v, %v", resp.Status, rest+1, err, cerr)
			}
		})
	}
	wg.Wait()
	slices.Sort(times)
	return times
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
