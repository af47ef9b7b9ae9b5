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

// firstBytes lets a crowd of clients ask at once for the file of a package and gives the
// milliseconds until each had its first byte, sorted. Each has read the package's listing before,
// on the same connection, and reads the file to its end.
func firstBytes(b *testing.B, root, name string, crowd int) []float64 {
	b.Helper()
	clients := make([]*http.Client, crowd)
	for i := range clients {
		clients[i] = &http.Client{Transport: &http.Transport{DisableCompression: true}}
		defer clients[i].CloseIdleConnections()
		download(b, clients[i], root+name)
	}
	times := make([]float64, crowd)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range times {
		wg.Go(func() {
			at, size := download(b, clients[i], root+name+"/-/"+name+"-1.0.0.tgz")
			if times[i] = float64(at.Sub(start).Microseconds()) / 1e3; size != 10<<20 {
				b.Errorf("%d bytes", size)
			}
		})
	}
	wg.Wait()
	slices.Sort(times)
	return times
}

// download reads an answer and says when its first byte came.
func download(b *testing.B, client *http.Client, url string) (first time.Time, size int64) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Error(err)
		return first, 0
	}
	resp, err := client.Do(req)
	if err != nil {
		b.Error(err)
		return first, 0
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		b.Error(err)
	}
	first = time.Now()
	rest, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("%s: %s, %v", url, resp.Status, err)
	}
	return first, rest + 1
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
