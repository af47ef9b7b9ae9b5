package cooldownhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/cooldown/cooldownhttp"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// R95: a cooldown that begins between the judgement and the write, here when the header fields are
// in the transport's buffer, stops the request: nothing of it arrives, and it is no attempt. With
// TLS and without.
func TestJudgedByTheWriteItself(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		var arrived atomic.Int64
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
		base := &http.Transport{DialContext: cooldownhttp.DialContext((&net.Dialer{}).DialContext)}
		if srv.Start(); encrypted {
			srv.Close()
			srv = httptest.NewTLSServer(srv.Config.Handler)
			roots := x509.NewCertPool()
			roots.AddCert(srv.Certificate())
			base.TLSClientConfig = &tls.Config{RootCAs: roots}
		}
		g := newRig(t, cooldown.Options{}, nil)
		g.transport.Base = base
		authority, err := cooldown.ParseAuthority(srv.Listener.Addr().String(), 0)
		if err != nil {
			t.Fatal(err)
		}
		fetch(t, g.client, srv.URL) // a connection to be kept
		for range 2 {               // on the kept one, and on a new one
			other, refusal := g.table.Ask(time.Now(), authority)
			if refusal != nil {
				t.Fatal(refusal)
			}
			before, attempts := arrived.Load(), len(g.attempts)
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() {
				now := time.Now()
				other.Finish(now, 429, retryafter.Parse([]string{"1"}, now))
			}})
			response, err := g.client.Do(request(t, ctx, http.MethodGet, srv.URL, nil))
			if err == nil {
				response.Body.Close()
			}
			if _, refused := cooldown.AsRefusal(err); !refused {
				t.Errorf("encrypted %v: %v", encrypted, err)
			}
			time.Sleep(10 * time.Millisecond)
			if arrived.Load() != before || len(g.attempts) != attempts {
				t.Errorf("encrypted %v: %d arrived, %d attempts", encrypted, arrived.Load()-before, len(g.attempts)-attempts)
			}
			time.Sleep(time.Second)
			fetch(t, g.client, srv.URL) // the probe
			base.CloseIdleConnections()
		}
		srv.Close()
	}
}
