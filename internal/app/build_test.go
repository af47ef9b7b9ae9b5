package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/ecosystem"
	"github.com/ecluse-gate/ecluse/internal/obs"
)

// R39, C37: the configured tokens and the configured address reach the server.
func TestTokensAndAddressAreWired(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.public.Publish("a", "1.0.0", longAgo, nil)
		cfg := w.config("publicURL: 'https://npm.example.com/gate/'\nserve: {trustedProxies: [192.0.2.0/24]}")
		cfg.Auth.Tokens = []config.Token{{Name: "ci", Secret: config.NewSecret("s3cret")}}
		a, err := Build(BuildOptions{
			Context: w.t.Context(), Config: cfg, Ecosystems: ecosystem.All(), Logger: obs.Discard(), Dial: w.network.Dial,
			Tracer: noop.NewTracerProvider().Tracer(""),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for token, want := range map[string]int{"": http.StatusUnauthorized, "s3cret": http.StatusOK} {
			r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, "/npm/a", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			rec := httptest.NewRecorder()
			a.Handler().ServeHTTP(rec, r)
			if rec.Code != want {
				t.Errorf("token %q: %d, want %d", token, rec.Code, want)
			}
			if link := "https://npm.example.com/gate/npm/a/-/"; want == http.StatusOK && !strings.Contains(rec.Body.String(), link) {
				t.Errorf("no link to %s: %.300s", link, rec.Body)
			}
		}
	})
}
