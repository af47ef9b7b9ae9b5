package packument

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Issue "the npm gate", malformed upstreams: the whole document is refused, as malformed or as over
// a limit.
func TestMalformedDocuments(t *testing.T) {
	good := versionOf("x", "1.0.0")
	for name, body := range map[string]string{
		"empty":                       ``,
		"HTML":                        `<!DOCTYPE html><html><body>Sign in</body></html>`,
		"an array":                    `[{"name":"x"}]`,
		"a string":                    `"x"`,
		"null":                        `null`,
		"an error object":             `{"error":"not found"}`,
		"truncated":                   listingOf("x", good)[:60],
		"two documents":               listingOf("x", good) + `{}`,
		"wrong name":                  listingOf("y", versionOf("y", "1.0.0")),
		"name in other case":          listingOf("X", good),
		"name not a string":           `{"name":["x"],"versions":{}}`,
		"name with half a pair":       `{"name":"x\ud83d","versions":{}}`,
		"no name":                     `{"versions":{` + good + `}}`,
		"name twice":                  `{"name":"x","name":"x","versions":{}}`,
		"versions twice":              listingOf("x", good, `"versions":{}`),
		"versions twice, one escaped": listingOf("x", good, `"versio\u006es":{}`),
		"time twice":                  listingOf("x", good, `"time":{}`, `"ti\u006de":{}`),
		"dist-tags twice":             listingOf("x", good, `"dist-tags":{}`, `"dist-tags":{}`),
		"versions an array":           `{"name":"x","versions":[]}`,
		"versions null":               `{"name":"x","versions":null}`,
		"invalid UTF-8":               listingOf("x", good, "\"readme\":\"\xff\""),
		"invalid UTF-8 in a key":      listingOf("x", good, "\"re\xc3\":1"),
		"key with half a pair":        listingOf("x", good, `"versions\udc00":{}`),
		"control character":           listingOf("x", good, "\"readme\":\"a\nb\""),
		"byte order mark":             "\ufeff" + listingOf("x", good),
		"trailing comma":              `{"name":"x","versions":{},}`,
		"single quotes":               `{'name':'x'}`,
		"bad escape":                  listingOf("x", good, `"readme":"\x41"`),
		"NaN":                         listingOf("x", good, `"n":NaN`),
	} {
		doc, err := Scan(pkg("x"), []byte(body))
		if !errors.Is(err, registry.ErrMalformed) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		} else if !strings.Contains(err.Error(), "npm:x") {
			t.Errorf("%s: %q does not say which package", name, err)
		}
	}
	for name, body := range map[string]string{
		"deep nesting":         listingOf("x", good, `"deep":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)),
		"hopeless nesting":     listingOf("x", good, `"deep":`+strings.Repeat(`{"a":`, 1_000_000)),
		"deep in a version":    listingOf("x", versionOf("x", "1.0.0", `"deep":`+strings.Repeat("[", 63)+strings.Repeat("]", 63))),
		"too many members":     listingOf("x", good, strings.Repeat(`"a":1,`, maxTop)+`"b":1`),
		"too many versions":    listingOf("x", many(maxVersions+1, func(i int) string { return fmt.Sprintf(`"%d.0.0":0`, i) })),
		"too many dist-tags":   listingOf("x", good, `"dist-tags":{`+many(maxTags+1, func(i int) string { return fmt.Sprintf(`"t%d":"1.0.0"`, i) })+`}`),
		"too many publication": listingOf("x", good, `"time":{`+many(maxTimes+1, func(i int) string { return fmt.Sprintf(`"%d.0.0":""`, i) })+`}`),
	} {
		if doc, err := Scan(pkg("x"), []byte(body)); !errors.Is(err, registry.ErrTooLarge) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		}
	}
}

func many(n int, item func(int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

// Issue "the npm gate", malformed upstreams: one bad version is dropped and counted, the healthy
// rest is served.
func TestDroppedVersions(t *testing.T) {
	dist := `"dist":{"tarball":"https://r.example/x.tgz"}`
	for name, bad := range map[string]string{
		"not an object":            `"2.0.0":"x"`,
		"null":                     `"2.0.0":null`,
		"no dist":                  `"2.0.0":{"name":"x","version":"2.0.0"}`,
		"dist not an object":       `"2.0.0":{"name":"x","version":"2.0.0","dist":[]}`,
		"no tarball":               `"2.0.0":{"name":"x","version":"2.0.0","dist":{"shasum":"00"}}`,
		"empty tarball":            `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":""}}`,
		"tarball not a string":     `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":{"a":1}}}`,
		"tarball with half a pair": `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":"https://r.example/\ud83d"}}`,
		"endless tarball":          `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":"https://` + strings.Repeat("a", maxAddress) + `"}}`,
		"other name":               `"2.0.0":{"name":"y","version":"2.0.0",` + dist + `}`,
		"name not a string":        `"2.0.0":{"name":1,"version":"2.0.0",` + dist + `}`,
		"other version":            `"2.0.0":{"name":"x","version":"1.0.0",` + dist + `}`,
		"version not a string":     `"2.0.0":{"name":"x","version":2,` + dist + `}`,
		"impossible version":       `"../2.0.0":{"name":"x","version":"../2.0.0",` + dist + `}`,
		"version of a time":        `"modified":{"name":"x","version":"modified",` + dist + `}`,
		"prototype":                `"__proto__":{"name":"x","version":"__proto__",` + dist + `}`,
		"version with a quote":     `"2.0.0\"":{"name":"x","version":"2.0.0\"",` + dist + `}`,
		"endless version":          `"2` + strings.Repeat(".0", 128) + `":{` + dist + `}`,
		"dist twice":               `"2.0.0":{"name":"x","version":"2.0.0",` + dist + `,` + dist + `}`,
		"dist twice, one escaped":  `"2.0.0":{"name":"x","version":"2.0.0",` + dist + `,"d\u0069st":{}}`,
		"name twice":               `"2.0.0":{"name":"x","name":"x","version":"2.0.0",` + dist + `}`,
		"version twice":            `"2.0.0":{"name":"x","version":"2.0.0","version":"2.0.0",` + dist + `}`,
		"scripts twice":            `"2.0.0":{"name":"x","version":"2.0.0","scripts":{},"scripts":{},` + dist + `}`,
		"install flag twice":       `"2.0.0":{"name":"x","version":"2.0.0","hasInstallScript":true,"hasInstallScript":false,` + dist + `}`,
		"tarball twice":            `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":"https://r.example/x.tgz","tarball":"https://r.example/x.tgz"}}`,
		"integrity twice":          `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":"https://r.example/x.tgz","integrity":"a","integrity":"b"}}`,
		"shasum twice":             `"2.0.0":{"name":"x","version":"2.0.0","dist":{"tarball":"https://r.example/x.tgz","shasum":"a","shasum":"b"}}`,
	} {
		for place, versions := range map[string]string{"first": bad + "," + versionOf("x", "1.0.0"), "last": versionOf("x", "1.0.0") + "," + bad} {
			doc := scanned(t, "x", listingOf("x", versions))
			if len(doc.Versions()) != 1 || doc.Versions()[0].Version != "1.0.0" || doc.Dropped() != 1 || doc.Lookup("1.0.0") != 0 || doc.Lookup("2.0.0") != -1 {
				t.Errorf("%s, %s: %+v, dropped %d", name, place, doc.Versions(), doc.Dropped())
			}
			body := string(rendered(t, "x", npm.FormFull, keeping(doc, all)).Body)
			if strings.Contains(body, `"2.0.0`) || strings.Contains(body, "r.example") {
				t.Errorf("%s, %s: %s", name, place, body)
			}
		}
	}
}

// A version or its publish time given twice would be a different one to different readers: neither
// is served.
func TestAmbiguousVersions(t *testing.T) {
	for name, body := range map[string]string{
		"version":              listingOf("x", versionOf("x", "2.0.0")+","+versionOf("x", "1.0.0")+","+versionOf("x", "2.0.0")),
		"version, one escaped": listingOf("x", versionOf("x", "2.0.0")+","+versionOf("x", "1.0.0")+`,"2.0.\u0030":{"version":"2.0.0","dist":{"tarball":"https://r.example/x"}}`),
	} {
		if doc := scanned(t, "x", body); len(doc.Versions()) != 1 || doc.Dropped() != 2 || doc.Lookup("2.0.0") != -1 {
			t.Errorf("%s: %+v, dropped %d", name, doc.Versions(), doc.Dropped())
		}
	}
	for _, times := range []string{`"2.0.0":"2015-01-01T00:00:00Z","2.0.0":"2030-01-01T00:00:00Z"`, `"2.0.0":"2015-01-01T00:00:00Z","1.0.0":"","2.0.\u0030":null`} {
		doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0")+","+versionOf("x", "2.0.0"), `"time":{`+times+`}`))
		if len(doc.Versions()) != 1 || doc.Dropped() != 1 || doc.Versions()[0].Version != "1.0.0" {
			t.Errorf("time %s: %+v, dropped %d", times, doc.Versions(), doc.Dropped())
		}
	}
}

// Escaped keys are the keys that they spell: "versio\u006es" is "versions", to us as to every
// client.
func TestEscapedKeys(t *testing.T) {
	body := `{"n\u0061me":"\u0078","versio\u006es":{"1\u002e0.0":{"\u006eame":"x","version":"1.0\u002e0","dis\u0074":{"tarb\u0061ll":"https:\/\/r.example\/x.tgz"},
		"script\u0073":{"postinst\u0061ll":"x"}}},"tim\u0065":{"1.0\u002e0":"2020-01-01T00:00:00\u005a"},"dist\u002dtags":{"l\u0061test":"1.0.0"}}`
	doc := scanned(t, "x", body)
	v := doc.Versions()
	if len(v) != 1 || v[0].Version != "1.0.0" || !v[0].InstallScripts || v[0].Artifacts[0].URL != "https://r.example/x.tgz" || v[0].Published.Year() != 2020 {
		t.Fatalf("%+v", v)
	}
	if version, ok := tagOf(doc, "latest"); !ok || version != "1.0.0" {
		t.Errorf("latest = %q, %v", version, ok)
	}
	got := decoded(t, rendered(t, "x", npm.FormFull, keeping(doc, but("1.0.0"))).Body)
	if len(got["versions"].(object)) != 0 || len(got["time"].(object)) != 0 || len(got["dist-tags"].(object)) != 0 {
		t.Errorf("a withheld version is served: %v", got)
	}
}

// Area age-policy: the publish time is the upstream's, whatever its spelling; what cannot be read
// is unknown, never old. // C75 (the facts)
func TestPublishTimes(t *testing.T) {
	for spelling, want := range map[string]string{
		`"2015-03-24T00:12:24.039Z"`:         "2015-03-24T00:12:24.039Z",
		`"2015-03-24T00:12:24Z"`:             "2015-03-24T00:12:24Z",
		`"2025-11-03T10:00:00.123456+00:00"`: "2025-11-03T10:00:00.123456Z",
		`"2025-11-03T10:00:00+05:30"`:        "2025-11-03T04:30:00Z",
		`"2025-11-03T10:00:00-08:00"`:        "2025-11-03T18:00:00Z",
		`""`:                                 "",
		`"yesterday"`:                        "",
		`"2015-03-24"`:                       "",
		`"2015-13-24T00:00:00Z"`:             "",
		`"2015-03-24T00:00:00"`:              "",
		`1427155944039`:                      "",
		`null`:                               "",
		`{"at":"2015-03-24T00:12:24.039Z"}`:  "",
	} {
		doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0"), `"time":{"created":"2010-01-01T00:00:00Z","1.0.0":`+spelling+`}`))
		got := doc.Versions()[0].Published
		if want == "" && !got.IsZero() || want != "" && got.Format(time.RFC3339Nano) != want {
			t.Errorf("%s is %v, want %q", spelling, got, want)
		}
	}
	// an abbreviated upstream, mostly
	for _, more := range []string{`"a":1`, `"time":null`, `"time":[]`, `"time":{}`} {
		if doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0"), more)); !doc.Versions()[0].Published.IsZero() {
			t.Errorf("%s gives an age", more)
		}
	}
	early := `{"time":{"1.0.0":"2020-01-01T00:00:00Z"},"name":"x","versions":{` + versionOf("x", "1.0.0") + `}}`
	if doc := scanned(t, "x", early); doc.Versions()[0].Published.Year() != 2020 {
		t.Error("a time before the versions is lost")
	}
}

func TestInstallScripts(t *testing.T) {
	for more, want := range map[string]bool{
		`"a":1`:                             false,
		`"hasInstallScript":true`:           true,
		`"hasInstallScript":false`:          false,
		`"hasInstallScript":null`:           false,
		`"hasInstallScript":"yes"`:          true, // true to a client
		`"scripts":{"install":"make"}`:      true,
		`"scripts":{"preinstall":"make"}`:   true,
		`"scripts":{"postinstall":"make"}`:  true,
		`"scripts":{"in\u0073tall":"make"}`: true,
		`"scripts":{"install":""}`:          false,
		`"scripts":{"test":"make"}`:         false,
		`"scripts":{"Install":"make"}`:      false,
		`"scripts":null`:                    false,
		`"scripts":["install"]`:             false,
		`"scripts":{"install":"a","install":""},"hasInstallScript":false`: true,
		`"hasInstallScript":false,"scripts":{"postinstall":"x"}`:          true,
		`"gypfile":true`:  true, // npm compiles it without being told
		`"gypfile":false`: false,
	} {
		doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0", more)))
		if len(doc.Versions()) != 1 || doc.Versions()[0].InstallScripts != want {
			t.Errorf("%s: %+v, want %v", more, doc.Versions(), want)
		}
	}
}

func TestDigests(t *testing.T) {
	sum := func(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }
	b64 := func(n int) string { return base64.StdEncoding.EncodeToString(sum(n)) }
	sha1 := hex.EncodeToString(sum(20))
	for dist, want := range map[string]string{
		`"a":1`:                                "",
		`"shasum":"` + sha1 + `"`:              "sha1",
		`"integrity":"sha512-` + b64(64) + `"`: "sha512",
		`"integrity":"sha1-` + b64(20) + ` sha512-` + b64(64) + `\tsha384-` + b64(48) + `  sha256-` + b64(32) + `","shasum":"` + sha1 + `"`: "sha512 sha384 sha256 sha1 sha1",
		`"integrity":" sha512-` + b64(64) + `?opt=1 md5-` + b64(16) + `"`:                                                                   "sha512 md5",
		`"integrity":"sha512-` + b64(64) + `?x"`:                                                                                            "sha512",
		`"integrity":"sha512-` + b64(32) + `"`:                                                                                              "",
		`"integrity":"sha512-` + b64(63) + `"`:                                                                                              "",
		`"integrity":"SHA512-` + b64(64) + `"`:                                                                                              "",
		`"integrity":"blake3-` + b64(32) + `"`:                                                                                              "",
		`"integrity":"sha256-` + strings.Repeat("!", 44) + `"`:                                                                              "",
		`"integrity":7,"shasum":"` + sha1[1:] + `"`:                                                                                         "",
		`"integrity":"","shasum":"` + strings.Repeat("z", 40) + `"`:                                                                         "",
	} {
		doc := scanned(t, "x", listingOf("x", `"1.0.0":{"dist":{"tarball":"t",`+dist+`}}`))
		var got []string
		for _, d := range doc.Versions()[0].Artifacts[0].Digests {
			got = append(got, d.Algorithm)
			if !bytes.Equal(d.Sum, sum(len(d.Sum))) {
				t.Errorf("%s: sum %x", dist, d.Sum)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", dist, got, want)
		}
	}
}

func TestFacts(t *testing.T) {
	name := "@acme/x"
	body := packument.Generate(name, 300, 7)
	doc := scanned(t, name, string(body))
	if len(doc.Versions()) != 300 || doc.Dropped() != 0 {
		t.Fatalf("%d versions, %d dropped", len(doc.Versions()), doc.Dropped())
	}
	for i, v := range doc.Versions() {
		version := packument.VersionAt(i)
		a := v.Artifacts[0]
		if v.Version != version || doc.Lookup(version) != i || a.File != "x-"+version+".tgz" || a.URL != "https://registry.example/@acme/x/-/x-"+version+".tgz" ||
			len(a.Digests) != 2 || !v.Published.Equal(time.Date(2015, 1, 1+i, 12, 0, 0, 0, time.UTC)) {
			t.Fatalf("version %d: %+v", i, v)
		}
	}
	if _, ok := tagOf(doc, "nope"); ok || doc.Lookup("nope") != -1 {
		t.Error("something absent is found")
	}
	if version, ok := tagOf(doc, "latest"); !ok || version != packument.VersionAt(298) {
		t.Errorf("latest = %q", version)
	}
}

// Empty listings are listings.
func TestNoVersions(t *testing.T) {
	for _, body := range []string{`{"name":"x"}`, `{"name":"x","versions":{}}`, `{"name":"x","time":{"unpublished":{"versions":["1.0.0"]},"created":"2020-01-01T00:00:00Z"}}`} {
		doc := scanned(t, "x", body)
		full := decoded(t, rendered(t, "x", npm.FormFull, keeping(doc, all)).Body)
		short := decoded(t, rendered(t, "x", npm.FormAbbreviated, keeping(doc, all)).Body)
		for _, got := range []object{full, short} {
			if got["name"] != "x" || len(got["versions"].(object)) != 0 || len(got["dist-tags"].(object)) != 0 {
				t.Errorf("%s: %v", body, got)
			}
		}
	}
}

// A document takes at most half as much again as its text, and its cost says what it takes. // C42,
// area memory
func TestCost(t *testing.T) {
	text := packument.Generate("x", 3000, 1)
	live, cost := live(t, "x", text)
	runtime.KeepAlive(text)
	if live > int64(len(text))*3/2 || cost < live*9/10 || cost > live*11/10 {
		t.Errorf("%d bytes of text take %d, the cost is %d", len(text), live, cost)
	}
	if small := scanned(t, "x", `{"name":"x"}`).Cost(); small < 12 || small > 4096 {
		t.Errorf("cost %d of an empty document", small)
	}
}

// A document from a hostile or broken upstream leaves the order of the rest alone.
func TestOrderIsKept(t *testing.T) {
	doc := scanned(t, "x", listingOf("x", versionOf("x", "2.0.0")+`,"bad":1,`+versionOf("x", "10.0.0")+","+versionOf("x", "1.0.0")))
	var got []string
	for _, v := range doc.Versions() {
		got = append(got, v.Version)
	}
	if !slices.Equal(got, []string{"2.0.0", "10.0.0", "1.0.0"}) {
		t.Errorf("%v", got)
	}
}
