package packument

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// hostile writes valid JSON that looks like a listing and tries to look different to different
// readers: members twice, keys and strings partly escaped, odd orders, odd types, spaces.
type hostile struct {
	*rand.Rand
	strings.Builder
}

func (h *hostile) one(of ...string) string { return of[h.IntN(len(of))] }

func (h *hostile) space() {
	if h.IntN(8) == 0 {
		h.WriteString(h.one(" ", "\n", "\t", "\r\n  "))
	}
}

// text writes a string with some characters escaped.
func (h *hostile) text(s string) {
	h.WriteByte('"')
	for _, r := range s {
		switch {
		case h.IntN(40) == 0:
			fmt.Fprintf(h, `\u%04x`, r)
		case r == '/' && h.IntN(8) == 0:
			h.WriteString(`\/`)
		default:
			h.WriteRune(r)
		}
	}
	h.WriteByte('"')
}

// object writes up to n members of random keys.
func (h *hostile) object(n int, keys []string, value func(key string)) {
	h.WriteByte('{')
	for i := range n {
		if i > 0 {
			h.WriteByte(',')
		}
		key := h.one(keys...)
		h.space()
		h.text(key)
		h.space()
		h.WriteByte(':')
		h.space()
		if h.IntN(25) == 0 {
			h.WriteString(h.one("null", "0", "[]", "{}", `""`, "true", `["x",{"tarball":"y"}]`, `"\ud83d"`))
		} else {
			value(key)
		}
		h.space()
	}
	h.WriteByte('}')
}

var hostileVersions = []string{"1.0.0", "1.0.1", "2.0.0-rc.1", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "modified"}

func (h *hostile) listing() string {
	h.Reset()
	keys := []string{"versions", "versions", "time", "dist-tags", "readme", "_distfiles", "modified", "Name"}
	h.WriteString(`{"name":"odd",`)
	start := h.Len()
	h.object(1+h.IntN(5), keys, func(key string) {
		switch key {
		case "versions":
			h.object(h.IntN(5), hostileVersions, h.version)
		case "time":
			h.object(h.IntN(6), append([]string{"created", "modified"}, hostileVersions...), func(string) { h.text(h.one("2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "x")) })
		case "dist-tags":
			h.object(h.IntN(4), []string{"latest", "next", "old"}, func(string) { h.text(h.one(hostileVersions...)) })
		default:
			h.text("https://secret.example/")
		}
	})
	return h.String()[:start] + h.String()[start+1:]
}

func (h *hostile) version(version string) {
	h.object(1+h.IntN(4), []string{"dist", "dist", "dist", "dist", "dist", "dist", "name", "version", "scripts", "hasInstallScript", "dependencies", "gypfile", "license"}, func(key string) {
		switch key {
		case "dist":
			h.object(1+h.IntN(2), []string{"tarball", "tarball", "tarball", "integrity", "shasum"}, func(string) { h.text(h.one("https://secret.example/a", "https://secret.example/b")) })
		case "name":
			h.text(h.one("odd", "odd", "odd", "odd", "even"))
		case "version":
			h.text(h.one(version, version, version, "9.9.9"))
		case "scripts":
			h.object(h.IntN(3), []string{"install", "preinstall", "postinstall", "test"}, func(string) { h.text(h.one("", "make")) })
		case "hasInstallScript", "gypfile":
			h.WriteString(h.one("true", "false"))
		default:
			h.object(h.IntN(3), []string{"a", "b"}, func(string) { h.text("^1.0.0") })
		}
	})
}

// No document makes policy see something else than a client: a parser differential would be a way
// around every rule.
func TestNoParserDifferential(t *testing.T) {
	h := &hostile{Rand: rand.New(rand.NewPCG(1, 2))}
	refused, servable, dropped, body := 0, 0, 0, ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last document was %s", body)
		}
	})
	for range 6_000 {
		body = h.listing()
		doc, err := Scan(pkg("odd"), []byte(body))
		if err != nil {
			if !errors.Is(err, registry.ErrMalformed) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		servable, dropped = servable+len(doc.Versions()), dropped+doc.Dropped()
		kept := map[string]bool{}
		part := keeping(doc, func(v string) bool { kept[v] = h.IntN(3) > 0; return kept[v] })
		for _, source := range readBoth(t, []byte(body)) {
			agrees(t, doc, source)
		}
		for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
			served(t, rendered(t, "odd", form, part).Body, kept)
		}
	}
	t.Logf("%d refused, %d servable versions, %d dropped", refused, servable, dropped)
	if refused < 300 || servable < 300 || dropped < 300 {
		t.Errorf("the documents are too good or too bad: %d refused, %d servable versions, %d dropped", refused, servable, dropped)
	}
}
