package page

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Issue "PyPI, complete": a page that nobody can trust is refused whole, as malformed or as over a
// limit.
func TestMalformedPages(t *testing.T) {
	good := file("x-1.0.tar.gz")
	for name, body := range map[string]string{
		"empty":                    ``,
		"an array":                 `[]`,
		"null":                     `null`,
		"an error object":          `{"message":"not found"}`,
		"truncated":                page(good)[:80],
		"two documents":            page(good) + "{}",
		"HTML that says JSON":      `<!DOCTYPE html><title>Sign in</title>`,
		"another project":          strings.Replace(page(good), `"x"`, `"y"`, 1),
		"name not a string":        strings.Replace(page(good), `"x"`, `["x"]`, 1),
		"no files":                 `{"meta":{"api-version":"1.0"},"name":"x"}`,
		"files an object":          `{"name":"x","files":{}}`,
		"files null":               `{"name":"x","files":null}`,
		"files twice":              page(good, `"files":[]`),
		"files twice, one escaped": page(good, `"fil\u0065s":[]`),
		"name twice":               page(good, `"name":"x"`),
		"meta twice":               page(good, `"meta":{}`),
		"versions twice":           page(good, `"versions":[],"versions":[]`),
		"status twice":             page(good, `"project-status":{},"project-status":{}`),
		"meta not an object":       `{"meta":[],"name":"x","files":[]}`,
		"major version 2":          strings.Replace(page(good), "1.1", "2.0", 1), // PEP 629
		"no version":               strings.Replace(page(good), "1.1", "one", 1),
		"version a number":         strings.Replace(page(good), `"1.1"`, `1.1`, 1),
		"version twice":            strings.Replace(page(good), `"1.1"`, `"1.1","api-version":"1.0"`, 1),
		"invalid UTF-8":            page(good, "\"_x\":\"\xff\""),
		"byte order mark":          "\ufeff" + page(good),
		"control character":        page(good, "\"_x\":\"a\nb\""),
		"trailing comma":           page(good + ","),
	} {
		doc, err := Scan(pkg("x"), jsonSource(body))
		if !errors.Is(err, registry.ErrMalformed) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		} else if !strings.Contains(err.Error(), "pypi:x") {
			t.Errorf("%s: %q does not say which project", name, err)
		}
	}
	for name, body := range map[string]string{
		"deep nesting":        page(good, `"_deep":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)),
		"hopeless nesting":    page(good, `"_deep":`+strings.Repeat("[", 1_000_000)),
		"two million files":   page(strings.TrimSuffix(strings.Repeat("{},", 2_000_000), ",")),
		"too many versions":   page(good, `"versions":[`+strings.TrimSuffix(strings.Repeat(`"1",`, maxReleases+1), ",")+`]`),
		"too many members":    page(good, strings.TrimSuffix(strings.Repeat(`"_a":1,`, maxTop+1), ",")),
		"two million numbers": page(strings.TrimSuffix(strings.Repeat("0,", 2_000_000), ",")),
	} {
		if doc, err := Scan(pkg("x"), jsonSource(body)); !errors.Is(err, registry.ErrTooLarge) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		}
	}
}

// The content type decides the form; one that says nothing of it is looked into, and neither form
// is malformed.
func TestForms(t *testing.T) {
	asJSON, asHTML := page(file("x-1.0.tar.gz")), `<a href="x-1.0.tar.gz">x</a>`
	for _, c := range []struct{ contentType, body, want string }{
		{"application/vnd.pypi.simple.v1+json", asJSON, "x-1.0.tar.gz"},
		{"Application/JSON; charset=utf-8", asJSON, "x-1.0.tar.gz"},
		{"", " \n" + asJSON, "x-1.0.tar.gz"},
		{"application/octet-stream", asJSON, "x-1.0.tar.gz"},
		{"text/html", asHTML, "x-1.0.tar.gz"},
		{"application/vnd.pypi.simple.v1+html", asHTML, "x-1.0.tar.gz"},
		{"text/plain", "\r\n" + asHTML, "x-1.0.tar.gz"},
		{"text/html", asJSON, "malformed"},
		{"application/json", asHTML, "malformed"},
		{"text/plain", "x-1.0.tar.gz", "malformed"},
		{"image/png", "\x89PNG", "malformed"},
	} {
		doc, err := Scan(pkg("x"), registry.Source{Body: []byte(c.body), ContentType: c.contentType, URL: pageURL})
		switch {
		case c.want == "malformed" && !errors.Is(err, registry.ErrMalformed), c.want != "malformed" && (err != nil || names(doc) != c.want):
			t.Errorf("%q with %.20q: %v, %v", c.contentType, c.body, doc, err)
		}
	}
}

// One bad file is dropped and counted, the healthy rest is served.
func TestDroppedFiles(t *testing.T) {
	for name, bad := range map[string]string{
		"not an object":                  `"x-2.0.tar.gz"`,
		"null":                           `null`,
		"empty":                          `{}`,
		"no file name":                   `{"url":"https://secret.example/x-2.0.tar.gz","hashes":{}}`,
		"file name not a string":         strings.Replace(file("x-2.0.tar.gz"), `"x-2.0.tar.gz"`, `2`, 1),
		"another project's":              file("y-2.0.tar.gz"),
		"no version":                     file("x.tar.gz"),
		"unknown kind":                   file("x-2.0.rpm"),
		"traversal":                      file("../x-2.0.tar.gz"),
		"a tag in the name":              file("x-2.0<b>.tar.gz"),
		"no url":                         `{"filename":"x-2.0.tar.gz","hashes":{}}`,
		"url not a string":               `{"filename":"x-2.0.tar.gz","url":[],"hashes":{}}`,
		"url without a host":             `{"filename":"x-2.0.tar.gz","url":"https:///x","hashes":{}}`,
		"url of a file":                  `{"filename":"x-2.0.tar.gz","url":"file:///etc/passwd","hashes":{}}`,
		"url with half a pair":           `{"filename":"x-2.0.tar.gz","url":"https://secret.example/\ud83d","hashes":{}}`,
		"url broken":                     `{"filename":"x-2.0.tar.gz","url":"https://secret.example/%zz","hashes":{}}`,
		"hashes a list":                  strings.Replace(file("x-2.0.tar.gz"), `{"sha256":"`+sha+`"}`, `[]`, 1),
		"hashes a string":                strings.Replace(file("x-2.0.tar.gz"), `{"sha256":"`+sha+`"}`, `"x"`, 1),
		"hash not a string":              strings.Replace(file("x-2.0.tar.gz"), `"`+sha+`"`, `1`, 1),
		"hash not hex":                   strings.Replace(file("x-2.0.tar.gz"), sha, "g"+sha[1:], 1),
		"hash too short":                 strings.Replace(file("x-2.0.tar.gz"), sha, sha[2:], 1),
		"hash twice":                     strings.Replace(file("x-2.0.tar.gz"), `"sha256"`, `"sha256":"`+sha2+`","sha256"`, 1),
		"hash twice, one in upper case":  strings.Replace(file("x-2.0.tar.gz"), `"sha256"`, `"SHA256":"`+sha2+`","sha256"`, 1),
		"requires-python a list":         file("x-2.0.tar.gz", `"requires-python":[">=3"]`),
		"yanked a number":                file("x-2.0.tar.gz", `"yanked":1`),
		"yanked an object":               file("x-2.0.tar.gz", `"yanked":{}`),
		"size a string":                  file("x-2.0.tar.gz", `"size":"12"`),
		"size a fraction":                file("x-2.0.tar.gz", `"size":1.5`),
		"size negative":                  file("x-2.0.tar.gz", `"size":-1`),
		"upload-time a number":           file("x-2.0.tar.gz", `"upload-time":1577836800`),
		"core-metadata a string":         file("x-2.0.tar.gz", `"core-metadata":"true"`),
		"core-metadata a list":           file("x-2.0.tar.gz", `"core-metadata":[]`),
		"core-metadata with a bad hash":  file("x-2.0.tar.gz", `"core-metadata":{"sha256":"00"}`),
		"legacy key with a bad hash":     file("x-2.0.tar.gz", `"data-dist-info-metadata":{"sha256":1}`),
		"gpg-sig a string":               file("x-2.0.tar.gz", `"gpg-sig":"yes"`),
		"provenance an object":           file("x-2.0.tar.gz", `"provenance":{}`),
		"filename twice":                 file("x-2.0.tar.gz", `"filename":"x-1.0.tar.gz"`),
		"url twice":                      file("x-2.0.tar.gz", `"url":"https://evil.example/x"`),
		"url twice, one escaped":         file("x-2.0.tar.gz", `"u\u0072l":"https://evil.example/x"`),
		"hashes twice":                   file("x-2.0.tar.gz", `"hashes":{}`),
		"upload-time twice":              file("x-2.0.tar.gz", `"upload-time":"2015-01-01T00:00:00Z","upload-time":"2030-01-01T00:00:00Z"`),
		"yanked twice":                   file("x-2.0.tar.gz", `"yanked":true,"yanked":false`),
		"core-metadata twice":            file("x-2.0.tar.gz", `"core-metadata":true,"core-metadata":false`),
		"same name, other bytes":         file("x-2.0.tar.gz") + "," + strings.Replace(file("x-2.0.tar.gz"), sha, sha2, 1),
		"same name, other age":           file("x-2.0.tar.gz") + "," + file("x-2.0.tar.gz", `"upload-time":"2015-01-01T00:00:00Z"`),
		"same name, other place, unsure": strings.NewReplacer(sha, "", `"sha256":""`, "").Replace(file("x-2.0.tar.gz") + "," + strings.Replace(file("x-2.0.tar.gz"), "packages/", "others/", 1)),
	} {
		for place, files := range map[string]string{"first": bad + "," + file("x-1.0.tar.gz"), "last": file("x-1.0.tar.gz") + "," + bad} {
			doc := scanned(t, jsonSource(page(files)))
			dropped := 1 + strings.Count(bad, "},{")
			if names(doc) != "x-1.0.tar.gz" || doc.Dropped() != dropped || doc.Lookup("x-1.0.tar.gz") != 0 || doc.Lookup("x-2.0.tar.gz") != -1 {
				t.Errorf("%s, %s: %q, dropped %d", name, place, names(doc), doc.Dropped())
			}
			for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
				if body := string(rendered(t, form, keeping(doc, all)).Body); strings.Contains(body, "2.0") || strings.Contains(body, "secret.example") {
					t.Errorf("%s, %s: %s", name, place, body)
				}
			}
		}
	}
}

// A file that is listed twice with the same bytes is served once.
func TestRepeatedFile(t *testing.T) {
	for name, again := range map[string]string{
		"the same":     file("x-1.0.tar.gz"),
		"another host": strings.Replace(file("x-1.0.tar.gz"), "secret.example", "mirror.example", 1),
	} {
		doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz")+","+again)))
		if names(doc) != "x-1.0.tar.gz" || doc.Dropped() != 1 || doc.Versions()[0].Artifacts[0].URL != "https://secret.example/packages/x-1.0.tar.gz" {
			t.Errorf("%s: %q, dropped %d", name, names(doc), doc.Dropped())
		}
	}
}

// C75: the age of a file is its own upload time; what cannot be read leaves it unknown, and never
// young or old by accident.
func TestUploadTime(t *testing.T) {
	want := time.Date(2018, 7, 17, 12, 30, 0, 500000000, time.UTC)
	for value, at := range map[string]time.Time{
		`"2018-07-17T12:30:00.500000Z"`: want,
		`"2018-07-17T14:30:00.5+02:00"`: want,
		`"2018-07-17T12:30:00"`:         {},
		`"2018-07-17"`:                  {},
		`"yesterday"`:                   {},
		`""`:                            {},
		`null`:                          {},
	} {
		doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz", `"upload-time":`+value))))
		if got := doc.Versions()[0].Published; !got.Equal(at) {
			t.Errorf("%s: %v, want %v", value, got, at)
		}
	}
	// A file that joined an old release later has the later age.
	doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz", `"upload-time":"2018-01-01T00:00:00Z"`)+","+file("x-1.0-py3-none-any.whl", `"upload-time":"2026-01-01T00:00:00Z"`))))
	if v := doc.Versions(); v[0].Version != v[1].Version || v[0].Published.Year() != 2018 || v[1].Published.Year() != 2026 {
		t.Errorf("%+v", v)
	}
}

func TestFacts(t *testing.T) {
	doc := scanned(t, jsonSource(page(
		`{"filename":"X-1.0-Beta.tar.gz","url":"../../packages/x.tar.gz#frag","hashes":{"md5":"`+md5sum+`","blake2b":"odd","sha256":"`+strings.ToUpper(sha)+`"}},`+
			file("x-1.0-py3-none-any.whl", `"core-metadata":{"sha256":"`+sha2+`"}`)+","+
			file("x-1.1-py3-none-any.whl", `"core-metadata":true`)+","+
			file("x-1.2-py3-none-any.whl", `"core-metadata":false`)+","+
			file("x-1.3-py2.7.egg"))))
	v := doc.Versions()
	sdist := v[0].Artifacts[0]
	if v[0].Version != "1.0b0" || !v[0].InstallScripts || sdist.URL != "https://secret.example/packages/x.tar.gz" || len(sdist.Digests) != 2 ||
		sdist.Digests[0].Algorithm != "sha256" || sdist.Digests[1].Algorithm != "md5" || sdist.Companion != nil {
		t.Errorf("sdist: %+v", v[0])
	}
	if wheel := v[1]; wheel.InstallScripts || wheel.Artifacts[0].Companion == nil || len(wheel.Artifacts[0].Companion.Digests) != 1 ||
		wheel.Artifacts[0].Companion.Digests[0].Sum[0] != 0xf3 {
		t.Errorf("wheel: %+v", wheel)
	}
	if c := v[2].Artifacts[0].Companion; c == nil || len(c.Digests) != 0 {
		t.Errorf("companion without a digest: %+v", c)
	}
	if v[3].Artifacts[0].Companion != nil || !v[4].InstallScripts {
		t.Errorf("%+v, %+v", v[3], v[4])
	}
	if doc.Cost() < int64(len(page("")))+1000 {
		t.Errorf("cost %d", doc.Cost())
	}
	if foreign := (*document)(nil); doc.Lookup("") != -1 || doc.Lookup("x-9.tar.gz") != -1 || foreign != nil {
		t.Error("Lookup finds what is not there")
	}
}

// C22: the index's counter of changes is read from both forms.
func TestSerial(t *testing.T) {
	for name, src := range map[string]registry.Source{
		"JSON": jsonSource(`{"meta":{"_last-serial":33,"api-version":"1.4"},"name":"x","files":[]}`),
		"HTML": htmlSource("<title>Links for x</title><a href=x-1.0.tar.gz></a>\n<!--SERIAL 33-->"),
	} {
		doc := scanned(t, src)
		if n, ok := Serial(doc); !ok || n != 33 {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
		if name == "HTML" && !strings.Contains(string(rendered(t, pypi.FormJSON, keeping(doc, all)).Body), `"_last-serial":33`) {
			t.Error("the JSON form loses it")
		}
	}
	if n, ok := Serial(scanned(t, jsonSource(page("")))); ok {
		t.Errorf("none: %d", n)
	}
}

// What is odd beside the files is passed over, and what can be kept of it is kept.
func TestOddMembers(t *testing.T) {
	long := strings.Repeat("1", 200)
	doc := scanned(t, jsonSource(`{"meta":{"tracks":[1,"https://a.example/","\ud83d"],"_last-serial":"x"},"files":[`+file("x-1.0.tar.gz")+`],"versions":["","`+long+`","1"],`+
		`"project-status":"gone","alternate-locations":{}}`))
	body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
	if strings.Count(body, "<meta ") != 3 || !strings.Contains(body, `<meta name="pypi:tracks" content="https://a.example/">`) {
		t.Error(body)
	}
	if got := string(rendered(t, pypi.FormJSON, keeping(doc, all)).Body); !strings.Contains(got, `"versions":["1"]`) || !strings.Contains(got, `"project-status":"gone"`) {
		t.Error(got)
	}
	if _, ok := Serial(doc); ok {
		t.Error("a serial that is none")
	}
	doc = scanned(t, jsonSource(`{"project-status":{"status":7,"reason":null,"_more":[]},"files":[]}`))
	if body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body); strings.Contains(body, "project-status") {
		t.Error(body)
	}
}
