package cooldownhttp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/internal/fake/storm"
)

// R34, R95, R96: a thousand clients of the library on real sockets. No request arrives during the
// cooldown, one is the probe, and no client hears of trouble while there is none, whatever the
// connections go through.
func TestThousandClients(t *testing.T) {
	for name, w := range map[string]storm.Weather{
		"dying connections": {Dying: true}, "slow TLS": {TLS: true, Handshake: 100 * time.Millisecond}, "HTTP2 with GOAWAY": {HTTP2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storm.Run(t, w, func(roots *x509.CertPool) storm.Get {
				base := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 64, ForceAttemptHTTP2: true}
				t.Cleanup(base.CloseIdleConnections)
				client := &http.Client{Transport: &cooldownhttp.Transport{Base: base, Table: cooldown.New(cooldown.Options{})}}
				return func(ctx context.Context, url string) (int, error) {
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
					if err != nil {
						return 0, err
					}
					response, err := client.Do(r)
					if err != nil {
						return 0, err
					}
					defer response.Body.Close()
					_, err = io.Copy(io.Discard, response.Body)
					return response.StatusCode, err
				}
			})
		})
	}
}
