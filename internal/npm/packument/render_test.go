package packument

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// abbreviatedMembers is npm's list, written down a second time on purpose.
var abbreviatedMembers = strings.Fields(`name version dependencies optionalDependencies devDependencies bundleDependencies bundledDependencies
	peerDependencies peerDependenciesMeta acceptDependencies bin directories dist engines os cpu libc funding deprecated _hasShrinkwrap`)

// oracle does to a decoded document what Render does to its bytes, the slow way. Tags are not its
// business.
func oracle(doc object, form string, keep func(string) bool) object {
	name := doc["name"].(string)
	versions, times := object{}, object{}
	for v, value := range doc["versions"].(object) {
		if !keep(v) {
			continue
		}
		value := value.(object)
		scripts, _ := value["scripts"].(object)
		install := value["hasInstallScript"] == true || scripts["preinstall"] != nil || scripts["install"] != nil || scripts["postinstall"] != nil
		value["dist"].(object)["tarball"] = mount + "/" + name + "/-/" + name[strings.LastIndex(name, "/")+1:] + "-" + v + ".tgz"
		if form == npm.FormAbbreviated {
			short := object{}
			for _, member := range abbreviatedMembers {
				if m, ok := value[member]; ok {
					short[member] = m
				}
			}
			if install {
				short["hasInstallScript"] = true
			}
			value = short
		}
		versions[v] = value
	}
	doc["versions"] = versions
	upstream, timed := doc["time"].(object)
	for k, at := range upstream {
		if k == "created" || k == "modified" || versions[k] != nil {
			times[k] = at
		}
	}
	if timed {
		doc["time"] = times
	}
	if form == npm.FormAbbreviated {
		short := object{"name": name, "versions": versions, "dist-tags": doc["dist-tags"]}
		if timed {
			short["modified"] = times["modified"]
		}
		return short
	}
	return doc
}

// What Render splices is what decoding, filtering and comparing gives: for both forms, any choice
// of versions, and every shape of document that is not huge. // area abbreviated-packument
func TestRenderAgainstOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, body := range [][]byte{
		packument.Generate("left-pad", 15, 3), packument.Generate("@acme/tool", 80, 4, packument.Weight(2500, 20), packument.Texts()), packument.Generate("@acme/tool", 64, 5, packument.WithoutTime()),
		packument.Generate("x", 1, 6), []byte(unusual), indented(packument.Generate("spaced", 20, 8)),
	} {
		name := decoded(t, body)["name"].(string)
		doc := scanned(t, name, string(body))
		for range 4 {
			chosen := map[string]bool{}
			for _, v := range doc.Versions() {
				chosen[v.Version] = random.IntN(3) > 0
			}
			keep := func(v string) bool { return chosen[v] }
			for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
				r := rendered(t, name, form, keeping(doc, keep))
				got, want := decoded(t, r.Body), oracle(decoded(t, body), form, keep)
				if r.Versions != len(want["versions"].(object)) || r.Divergent != 0 {
					t.Errorf("%s: says %d versions, %d divergent", name, r.Versions, r.Divergent)
				}
				delete(got, "dist-tags")
				delete(want, "dist-tags")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, %s: %s", name, form, diff)
				}
			}
		}
	}
}

// unusual has what generated documents have not: odd orders, spaces, unknown members everywhere,
// numbers that floats cannot hold.
const unusual = ` { "readme" : "a\ud83d\ude00\\\"" , "time":{ "3.0.0-rc.1" : "2021-01-01T00:00:00Z","modified":"2022-01-01T00:00:00Z" , "1.0.0":"2020-01-01T00:00:00Z","0.9.0":"2019-01-01T00:00:00Z",
"created":"2019-01-01T00:00:00Z"},"users":{"jo":true},
"versions" : { "1.0.0" : { "dist" : { "x" : [ ] , "tarball" : "https:\/\/r.example\/a" , "z" : null } , "libc":["musl"], "version" : "1.0.0","name":"odd","private-member":{"a":[1,2,{}]},"os":["linux"] } ,
"2.0.0":{"scripts":{"preinstall":"x"},"hasInstallScript":true,"dist":{"tarball":"t"},"_hasShrinkwrap":false,"bin":"x.js","license":"MIT","cpu":["x64"],"funding":"https://f.example"},
"3.0.0-rc.1":{"dist":{"tarball":"t"}}}, "name" : "odd", "dist-tags":{}, "n":12345678901234567890.5e-7, "":{"empty":"key"} }`

func indented(body []byte) []byte {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		panic(err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return out
}

// Unknown members pass through byte for byte; only what must change does. // C42 "drop nothing from
// the full form"
func TestBytesPassThrough(t *testing.T) {
	doc := scanned(t, "odd", unusual)
	got := string(rendered(t, "odd", npm.FormFull, keeping(doc, but("2.0.0"))).Body)
	for _, piece := range []string{
		`"readme" : "a\ud83d\ude00\\\""`, `"n":12345678901234567890.5e-7`, `"":{"empty":"key"}`, `"users":{"jo":true}`,
		`"1.0.0" : { "dist" : { "x" : [ ] , "tarball" : "` + mount + `/odd/-/odd-1.0.0.tgz" , "z" : null } , "libc":["musl"]`,
		`"private-member":{"a":[1,2,{}]}`, `"3.0.0-rc.1" : "2021-01-01T00:00:00Z"`,
	} {
		if !strings.Contains(got, piece) {
			t.Errorf("%q is missing in %s", piece, got)
		}
	}
}

// C37, area tarball-url-prefix: every tarball is at the mount's own origin and below its path, so
// that npm 12 accepts it, and neither an upstream's address nor a credential in one is seen by
// anybody.
func TestTarballsAreOurs(t *testing.T) {
	const name = "@acme/x"
	private := `{"name":"@acme/x","_distfiles":{"x-1.0.0.tgz":{"url":"https://secret.example/x"}},"_uplinks":{"a":"https://secret.example"},"versions":{
		"1.0.0":{"dist":{"tarball":"https://user:hunter2@secret.example/@acme/x/-/x-1.0.0.tgz?token=s3cr3t"}},
		"2.0.0":{"dist":{"tarball":"\u0068ttps:\/\/secret.example\/2"}},
		"3.0.0":{"dist":{"tarball":["https://secret.example/3"]}},"4.0.0":{"dist":{"tarball":"https://secret.example/4","tarball":"https://secret.example/5"}}}}`
	public := packument.Generate(name, 30, 1, packument.Origin("https://secret.example"))
	for _, base := range []string{"https://gate.example/npm", "http://127.0.0.1:4873/npm", "http://[::1]:4873", `https://odd.example/"quoted"\`} {
		parts := []registry.Part{keeping(scanned(t, name, private), all), keeping(scanned(t, name, string(public)), all)}
		for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
			r, err := Render(registry.View{Package: pkg(name), Form: form, Base: base, Parts: parts})
			if err != nil {
				t.Fatal(err)
			}
			if s := string(r.Body); strings.Contains(s, "secret") || strings.Contains(s, "hunter2") || strings.Contains(s, "s3cr3t") {
				t.Errorf("%s leaks: %s", form, s)
			}
			for version, v := range decoded(t, r.Body)["versions"].(object) {
				want := base + "/@acme/x/-/x-" + version + ".tgz"
				if got := v.(object)["dist"].(object)["tarball"]; got != want {
					t.Errorf("tarball %v, want %s", got, want)
				}
				if route, err := npm.ParsePath(strings.TrimPrefix(want, base)); err != nil || route.Version != version || route.Kind != npm.RouteArtifact {
					t.Errorf("%s does not come back: %+v, %v", want, route, err)
				}
			}
		}
	}
}

// C40, area huge-packument: the abbreviated form of a large document is small, and tells installers
// all they need.
func TestAbbreviatedIsSmall(t *testing.T) {
	shape := packument.Shapes()[5] // 9.4 MB, mostly members that installers do not read
	doc := scanned(t, shape.Name, string(shape.Generate(1)))
	r := rendered(t, shape.Name, npm.FormAbbreviated, keeping(doc, all))
	if r.Versions != shape.Versions || len(r.Body) > shape.Bytes*(shape.Kept+12)/100 {
		t.Errorf("%d versions in %d bytes", r.Versions, len(r.Body))
	}
	if r.ContentType != "application/vnd.npm.install-v1+json" {
		t.Errorf("content type %q", r.ContentType)
	}
}

// Issue "the npm gate": listings of 21 MB and of 40 MB are served. // C42, area huge-packument
func TestHugeDocuments(t *testing.T) {
	// vite's is that large because every version repeats a licence
	for _, size := range []int{21_000_000, 40_000_000} {
		const versions = 2_600
		body := packument.Generate("huge", versions, 1, packument.Weight(size/versions, 10), packument.Texts())
		if len(body) < size*9/10 {
			t.Fatalf("only %d bytes", len(body))
		}
		doc := scanned(t, "huge", string(body))
		full := rendered(t, "huge", npm.FormFull, keeping(doc, but(packument.VersionAt(0))))
		if cap(full.Body) > len(body)+200*versions || len(scanned(t, "huge", string(full.Body)).Versions()) != versions-1 {
			t.Errorf("%d versions in %d bytes", full.Versions, len(full.Body))
		}
		short := rendered(t, "huge", npm.FormAbbreviated, keeping(doc, all))
		if len(short.Body)*4 > len(body) || len(scanned(t, "huge", string(short.Body)).Versions()) != versions {
			t.Errorf("the abbreviated form has %d of %d bytes", len(short.Body), len(body))
		}
	}
}

// C13: the full form carries the publish times; C60, C35 (the part that is decided here): the two
// forms differ in bytes and in media type, so that tags computed over them differ too.
func TestFormsDiffer(t *testing.T) {
	doc := scanned(t, "x", string(packument.Generate("x", 3, 1)))
	full, short := rendered(t, "x", npm.FormFull, keeping(doc, all)), rendered(t, "x", npm.FormAbbreviated, keeping(doc, all))
	if len(decoded(t, full.Body)["time"].(object)) != 5 {
		t.Error("the full form has no times")
	}
	if decoded(t, short.Body)["time"] != nil || string(full.Body) == string(short.Body) || full.ContentType == short.ContentType || full.ContentType != "application/json" {
		t.Errorf("%q and %q", full.ContentType, short.ContentType)
	}
	again := rendered(t, "x", npm.FormFull, keeping(doc, all))
	if string(again.Body) != string(full.Body) {
		t.Error("the same view gives other bytes")
	}
}

// hasInstallScript is true in the abbreviated form exactly when installing runs something, whatever
// the upstream claims.
func TestAbbreviatedInstallScript(t *testing.T) {
	for more, want := range map[string]any{
		`"scripts":{"install":"x"}`: true, `"hasInstallScript":true`: true, `"scripts":{"test":"x"}`: nil, `"hasInstallScript":false`: nil,
		`"scripts":{"install":"x"},"hasInstallScript":false`: true,
	} {
		doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0", more)))
		body := rendered(t, "x", npm.FormAbbreviated, keeping(doc, all)).Body
		got := decoded(t, body)["versions"].(object)["1.0.0"].(object)
		if got["hasInstallScript"] != want || got["scripts"] != nil || strings.Count(string(body), "hasInstallScript") > 1 {
			t.Errorf("%s: %s", more, body)
		}
	}
	bare := scanned(t, "x", listingOf("x", `"1.0.0":{"scripts":{"install":"x"},"dist":{"tarball":"t"}},"2.0.0":{"license":"MIT","dist":{"tarball":"t"}}`))
	decoded(t, rendered(t, "x", npm.FormAbbreviated, keeping(bare, all)).Body)
}

func TestRenderVersion(t *testing.T) {
	body := packument.Generate("@acme/x", 5, 1)
	doc := scanned(t, "@acme/x", string(body))
	want := oracle(decoded(t, body), npm.FormFull, all)["versions"].(object)
	for i, v := range doc.Versions() {
		one, err := RenderVersion(doc, i, mount)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[v.Version], any(decoded(t, one))); diff != "" {
			t.Error(diff)
		}
	}
	for _, i := range []int{-1, 5} {
		if _, err := RenderVersion(doc, i, mount); err == nil {
			t.Errorf("version %d is rendered", i)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	doc := scanned(t, "x", `{"name":"x"}`)
	part := registry.Part{Document: doc}
	for name, v := range map[string]registry.View{
		"no parts":      {Package: pkg("x"), Form: npm.FormFull},
		"unknown form":  {Package: pkg("x"), Form: "short", Parts: []registry.Part{part}},
		"other package": {Package: pkg("y"), Form: npm.FormFull, Parts: []registry.Part{part}},
		"foreign part":  {Package: pkg("x"), Form: npm.FormFull, Parts: []registry.Part{part, {}}},
	} {
		if r, err := Render(v); err == nil || r.Body != nil {
			t.Errorf("%s: %s, %v", name, r.Body, err)
		}
	}
	if _, err := RenderVersion(nil, 0, mount); err == nil {
		t.Error("a foreign document is rendered")
	}
}

// A Keep that is too short withholds the rest.
func TestKeepTooShort(t *testing.T) {
	doc := scanned(t, "x", listingOf("x", versionOf("x", "1.0.0")+","+versionOf("x", "2.0.0")))
	if r := rendered(t, "x", npm.FormFull, registry.Part{Document: doc, Keep: []bool{true}}); r.Versions != 1 || strings.Contains(string(r.Body), "2.0.0") {
		t.Errorf("%s", r.Body)
	}
	if r := rendered(t, "x", npm.FormFull, registry.Part{Document: doc}); r.Versions != 0 {
		t.Errorf("%s", r.Body)
	}
}

// A document without dist-tags, time or versions gets those that the view needs.
func TestMissingMembersAreAdded(t *testing.T) {
	bare, rich := scanned(t, "x", `{"name":"x"}`), scanned(t, "x", string(packument.Generate("x", 2, 1)))
	got := decoded(t, rendered(t, "x", npm.FormFull, keeping(bare, all), keeping(rich, all)).Body)
	if len(got["versions"].(object)) != 2 || len(got["time"].(object)) != 4 || got["dist-tags"].(object)["latest"] != packument.VersionAt(1) {
		t.Errorf("%v", got)
	}
	if got := decoded(t, rendered(t, "x", npm.FormFull, keeping(bare, all)).Body); fmt.Sprint(got) != "map[dist-tags:map[] name:x versions:map[]]" {
		t.Errorf("%v", got)
	}
}
