package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/fakepypi"
	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// The rendering is what decoding the page into maps, changing them by the plain words of the
// specification and encoding them again would give. The oracle knows neither spans nor splicing.
func oracle(t testing.TB, body []byte, keep func(file string) bool) object {
	t.Helper()
	page := decoded(t, body)
	releases := map[string]bool{}
	files := []any{}
	for _, f := range page["files"].([]any) {
		f := f.(object)
		name := f["filename"].(string)
		version, _, ok := pypi.VersionOfFile("x", name)
		if !ok || !keep(name) {
			continue
		}
		releases[version] = true
		f["url"] = mount + "/files/x/" + name
		if p, _ := f["provenance"].(string); p != "" {
			f["provenance"] = mount + "/files/x/" + name + ".provenance"
		}
		if f["hashes"] == nil {
			f["hashes"] = object{}
		}
		if v, ok := f["dist-info-metadata"]; ok {
			if f["core-metadata"] == nil {
				f["core-metadata"] = v
			}
			delete(f, "dist-info-metadata")
		}
		if f["core-metadata"] == nil && f["data-dist-info-metadata"] != nil {
			f["core-metadata"] = f["data-dist-info-metadata"]
		}
		if f["core-metadata"] != nil {
			f["data-dist-info-metadata"] = f["core-metadata"]
		}
		files = append(files, f)
	}
	versions := []any{}
	for _, v := range page["versions"].([]any) {
		if releases[v.(string)] {
			versions = append(versions, v)
		}
	}
	page["files"], page["versions"], page["name"] = files, versions, "x"
	return page
}

func TestOracle(t *testing.T) {
	large, _ := fakepypi.Generate("x", 400, 7, "https://files.example")
	bodies := map[string][]byte{"generated": large}
	for seed := range uint64(60) {
		bodies[fmt.Sprintf("random %d", seed)] = randomPage(seed)
	}
	for name, body := range bodies {
		for i, keep := range []func(string) bool{all, func(f string) bool { return len(f)%3 > 0 }, func(string) bool { return false }} {
			src := jsonSource(string(body))
			doc := scanned(t, src)
			if doc.Dropped() > 0 {
				t.Fatalf("%s: dropped %d of %s", name, doc.Dropped(), body)
			}
			got := decoded(t, rendered(t, pypi.FormJSON, keeping(doc, keep)).Body)
			for _, f := range got["files"].([]any) {
				// the private name of a key that must not be sent
				delete(f.(object), "_dist-info-metadata")
			}
			if want := oracle(t, body, keep); !reflect.DeepEqual(got, want) {
				g, _ := json.MarshalIndent(got, "", " ")
				w, _ := json.MarshalIndent(want, "", " ")
				t.Fatalf("%s, %d: got\n%s\nwant\n%s", name, i, g, w)
			}
		}
	}
}

// randomPage makes a good page in some spelling: members in any order, white space, escapes,
// unknown members, each allowed type.
func randomPage(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 9))
	pick := func(options ...string) string { return options[r.IntN(len(options))] }
	object := func(members []string) string {
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		space := pick("", " ", "\n\t")
		return "{" + space + strings.Join(members, space+","+space) + space + "}"
	}
	some := func(members []string, options ...string) []string {
		if r.IntN(2) == 0 {
			members = append(members, pick(options...))
		}
		return members
	}
	hashes := func() string {
		return pick(`{}`, `{"sha256":"`+sha+`"}`, `{ "md5" : "`+md5sum+`", "blake2b":"?" }`, `{"sha512":"`+sha+sha2+`","sha256":"`+strings.ToUpper(sha)+`"}`)
	}
	var files, versions []string
	for i := range r.IntN(8) {
		version := fmt.Sprintf("%d.%d", i/3+1, i%3)
		if i%2 == 0 {
			versions = append(versions, `"`+version+`"`)
		}
		name := pick("x-"+version+".tar.gz", "X-"+version+"-py3-none-any.whl", "x-"+version+"-1-cp311-cp311-linux_x86_64.whl")
		members := []string{
			pick(`"filename":"`+name+`"`, `"filen\u0061me": "`+strings.Replace(name, "-", `\u002D`, 1)+`"`),
			`"url" :"` + pick("https://h.example/a/", "/a/", "../../b/", "//h.example/") + name + pick("", "#frag", "?q=1") + `"`,
		}
		members = some(members, `"hashes":`+hashes(), `"hashes": null`)
		members = some(members, `"requires-python":">=3"`, `"requires-python":null`, `"requires-python":"\u003e3"`)
		members = some(members, `"core-metadata":`+pick("true", "false", "null", hashes()))
		members = some(members, `"data-dist-info-metadata": `+pick("true", "false", "null", hashes()))
		members = some(members, `"yanked":`+pick("true", "false", `"why \"not\""`, "null", `""`))
		members = some(members, `"size":`+pick("0", "123", "null"), `"upload-time":`+pick(`"2020-01-01T00:00:00Z"`, `"?"`, "null"))
		members = some(members, `"gpg-sig":`+pick("true", "false", "null"), `"provenance":`+pick(`"https://pypi.org/p"`, "null"))
		members = some(members, `"_x":`+pick("[[]]", `{"url":"https://kept.example/","hashes":1}`, "1e9", `"\ud83d\ude00"`))
		if r.IntN(4) == 0 {
			members = append(members, `"dist-info-metadata":`+hashes())
		}
		files = append(files, object(members))
	}
	// Releases that the list lacks come after those that it has, so the oracle needs them all.
	for i := 1; i < 8; i += 2 {
		versions = append(versions, fmt.Sprintf(`"%d.%d"`, i/3+1, i%3))
	}
	return []byte(object([]string{
		`"meta":{"api-version":"1.` + pick("0", "1", "4") + `","_last-serial":5}`, `"name":"X"`,
		`"files":[` + strings.Join(files, ",") + `]`, `"versions":[` + strings.Join(versions, " , ") + `]`, `"_unknown":{"files":[]}`,
	}))
}

// Rendering is stable: reading what was rendered and rendering it again changes nothing, in either
// form and across them.
func roundTrip(t testing.TB, doc registry.Document) {
	t.Helper()
	part := keeping(doc, all)
	asJSON, asHTML := rendered(t, pypi.FormJSON, part), rendered(t, pypi.FormHTML, part)
	fromJSON := scanned(t, registry.Source{Body: asJSON.Body, ContentType: asJSON.ContentType})
	fromHTML := scanned(t, registry.Source{Body: asHTML.Body, ContentType: asHTML.ContentType})
	if fromJSON.Dropped() != 0 || names(fromJSON) != names(doc) || fromHTML.Dropped() != 0 || names(fromHTML) != names(doc) {
		t.Fatalf("%q became %q in JSON (dropped %d), %q in HTML (dropped %d)\n%s\n%s", names(doc), names(fromJSON), fromJSON.Dropped(), names(fromHTML), fromHTML.Dropped(), asJSON.Body, asHTML.Body)
	}
	if again := rendered(t, pypi.FormJSON, keeping(fromJSON, all)); !bytes.Equal(again.Body, asJSON.Body) {
		t.Fatalf("JSON changes:\n%s\n%s", asJSON.Body, again.Body)
	}
	body := func(d registry.Document) string {
		_, after, _ := strings.Cut(string(rendered(t, pypi.FormHTML, keeping(d, all)).Body), "<title>")
		return after
	}
	if want := body(doc); body(fromJSON) != want || body(fromHTML) != want {
		t.Fatalf("HTML changes:\n%s\n%s\n%s", want, body(fromJSON), body(fromHTML))
	}
	for _, v := range fromHTML.Versions() {
		if a := v.Artifacts[0]; a.URL != mount+"/files/x/"+a.File {
			t.Fatalf("a link leads to %q", a.URL)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	asJSON, asHTML := fakepypi.Generate("x", 200, 3, "https://files.example")
	roundTrip(t, scanned(t, jsonSource(string(asJSON))))
	roundTrip(t, scanned(t, htmlSource(string(asHTML))))
	for seed := range uint64(60) {
		roundTrip(t, scanned(t, jsonSource(string(randomPage(seed)))))
	}
}

// Whatever an upstream sends: no panic, and either an error of one of the two kinds or a document
// whose renderings are clean.
func fuzzScan(f *testing.F, source func(string) registry.Source) {
	f.Fuzz(func(t *testing.T, body string) {
		doc, err := Scan(pkg("x"), source(strings.Clone(body)))
		if err != nil {
			if doc != nil {
				t.Fatal("a document with an error")
			}
			return
		}
		for _, v := range doc.Versions() {
			if i := doc.Lookup(v.Artifacts[0].File); i < 0 || doc.Versions()[i].Artifacts[0].File != v.Artifacts[0].File {
				t.Fatalf("Lookup(%q) = %d", v.Artifacts[0].File, i)
			}
			if u := v.Artifacts[0].URL; !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
				t.Fatalf("an address %q", u)
			}
		}
		roundTrip(t, doc)
	})
}

func FuzzScanJSON(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(string(randomPage(seed)))
	}
	f.Add(page(file("x-1.0.tar.gz", `"yanked":"\"><b>\u0000\ud83d"`, `"provenance":"https://u:p@h/"`)))
	fuzzScan(f, jsonSource)
}

func FuzzScanHTML(f *testing.F) {
	_, asHTML := fakepypi.Generate("x", 3, 1, "https://files.example")
	f.Add(string(asHTML))
	f.Add(`<base href=//h/a/><title>Links for x<a href=x-1.0.tar.gz#md5=` + md5sum + ` data-yanked data-requires-python="&gt;3"><!--SERIAL 1--><a href='x-2.zip' data-core-metadata=true>`)
	f.Add(`<meta name=pypi:repository-version content=1.0><meta name=pypi:project-status content="&quot;">`)
	fuzzScan(f, htmlSource)
}

// A page that was cut off anywhere is refused: half a list would pass for a whole one.
func TestCutPages(t *testing.T) {
	for seed := range uint64(12) {
		body := randomPage(seed)
		for n := range len(body) {
			if doc, err := Scan(pkg("x"), jsonSource(string(body[:n]))); !errors.Is(err, registry.ErrMalformed) || doc != nil {
				t.Fatalf("cut after %d bytes: %v, %v in %s", n, doc, err, body[:n])
			}
		}
	}
}
