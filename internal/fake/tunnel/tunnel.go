// Package tunnel is the CONNECT method of a scripted proxy.
package tunnel

import (
	"io"
	"net"
	"net/http"
	"sync"
)

// Serve answers a CONNECT request with a tunnel to target, a host:port, until either side closes.
func Serve(w http.ResponseWriter, r *http.Request, target string) {
	far, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer far.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(far, client); far.Close() })
	both.Go(func() { _, _ = io.Copy(client, far); client.Close() })
	both.Wait()
}
