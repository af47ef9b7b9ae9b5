package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// Everything that nobody here changes reaches the client byte for byte: order, white space,
// spellings, unknown members.
func TestSplice(t *testing.T) {
	body := "{ \"_private\" : [1,  2.0e3],\n \"meta\": {\"_last-serial\": 10 , \"api-version\":\t\"1.4\" },\r\n \"name\":\"X\",\"alternate-locations\": [ ]," +
		"\"files\":[ {\"_odd\": {\"url\":\"kept\"},\"url\": \"https://secret.example/p/x-1.0.tar.gz\" , \"filename\":\"x-1\\u002e0.tar.gz\",\"hashes\":{ \"md5\":\"" + md5sum + "\"} } ,\n" +
		file("x-2.0.tar.gz") + "], \"versions\" : [\"2.0\", \"1.0\"],\"project-status\":{\"status\":\"archived\",\"reason\":\"done\"} }"
	want := `{"_private" : [1,  2.0e3],"meta": {"_last-serial": 10 , "api-version":` + "\t" + `"1.4" },"name":"x","alternate-locations": [ ],` +
		`"files":[{"_odd": {"url":"kept"},"url": "` + mount + `/files/x/x-1.0.tar.gz" , "filename":"x-1\u002e0.tar.gz","hashes":{ "md5":"` + md5sum + `"} }],` +
		`"versions" : ["1.0"],"project-status":{"status":"archived","reason":"done"}}`
	r := rendered(t, pypi.FormJSON, keeping(scanned(t, jsonSource(body)), but("x-2.0.tar.gz")))
	if got := string(r.Body); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.ContentType != "application/vnd.pypi.simple.v1+json" || r.Versions != 1 || r.Divergent != 0 {
		t.Errorf("%+v", r)
	}
	decoded(t, r.Body)
}

// What the specification demands and the upstream leaves out is added (C76: "hashes"; PEP 691:
// "meta", "name"; PEP 700: "versions").
func TestAddedMembers(t *testing.T) {
	for name, body := range map[string]string{
		"nothing but files": `{"files":[{"filename":"x-1.0.tar.gz","url":"x-1.0.tar.gz"}]}`,
		"empty meta":        `{"files":[{"filename":"x-1.0.tar.gz","url":"x-1.0.tar.gz","hashes":null}],"meta":{ }}`,
		"meta without":      `{"meta":{"_a":1},"files":[{"hashes":null,"filename":"x-1.0.tar.gz","url":"x-1.0.tar.gz"}],"versions":null}`,
	} {
		got := decoded(t, rendered(t, pypi.FormJSON, keeping(scanned(t, jsonSource(body)), all)).Body)
		if got["name"] != "x" || fmt.Sprint(got["versions"]) != "[1.0]" || got["meta"].(object)["api-version"] != "1.0" || name == "meta without" && got["meta"].(object)["_a"] != 1.0 {
			t.Errorf("%s: %v", name, got)
		}
		if hashes, ok := filesOf(t, got)["x-1.0.tar.gz"]["hashes"].(object); !ok || len(hashes) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// C17, C21, PEP 714: whatever key the upstream uses, "core-metadata" and "data-dist-info-metadata"
// say the same. "dist-info-metadata", at which pip before 23.2 stops, is never sent.
func TestCompanionKeys(t *testing.T) {
	a, b := `{"sha256":"`+sha+`"}`, `{"sha256":"`+sha2+`"}`
	for members, want := range map[string]string{
		`"core-metadata":` + a: sha,
		`"core-metadata":` + a + `,"data-dist-info-metadata":` + a: sha,
		`"data-dist-info-metadata":` + a + `,"core-metadata":` + a: sha,
		// C21
		`"data-dist-info-metadata":` + a: sha,
		`"dist-info-metadata":` + a:      sha,
		// C17: the other key lies
		`"core-metadata":` + a + `,"data-dist-info-metadata":` + b:                                sha,
		`"data-dist-info-metadata":` + b + `,"core-metadata":` + a:                                sha,
		`"dist-info-metadata":` + b + `,"core-metadata":` + a:                                     sha,
		`"dist-info-metadata":` + b + `,"core-metadata":` + a + `,"data-dist-info-metadata":` + b: sha,
		`"core-metadata":null,"dist-info-metadata":` + a:                                          sha,
		`"core-metadata": null,"dist-info-metadata":null, "data-dist-info-metadata" : ` + a:       sha,
		`"dist-info-metadata":` + a + `,"data-dist-info-metadata":` + b:                           sha,
		`"core-metadata":true`:                                 "true",
		`"core-metadata":true,"data-dist-info-metadata":` + a:  "true",
		`"dist-info-metadata":true`:                            "true",
		`"core-metadata":{}`:                                   "{}",
		`"core-metadata":{"blake2b":"zz"}`:                     "unknown",
		`"core-metadata":false`:                                "false",
		`"core-metadata":false,"data-dist-info-metadata":` + a: "false",
		`"core-metadata":null`:                                 "",
		`"dist-info-metadata":null`:                            "",
		`"_x":1`:                                               "",
	} {
		doc := scanned(t, jsonSource(page(file("x-1.0-py3-none-any.whl", members))))
		if doc.Dropped() != 0 {
			t.Fatalf("%s: dropped", members)
		}
		body := rendered(t, pypi.FormJSON, keeping(doc, all)).Body
		f := filesOf(t, decoded(t, body))["x-1.0-py3-none-any.whl"]
		if _, old := f["dist-info-metadata"]; old {
			t.Errorf("%s: %s", members, body)
		}
		companion := doc.Versions()[0].Artifacts[0].Companion
		page := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
		switch want {
		case "":
			if f["core-metadata"] != nil || f["data-dist-info-metadata"] != nil || companion != nil || strings.Contains(page, "-metadata=") {
				t.Errorf("%s: %s\n%s", members, body, page)
			}
		case "false":
			if f["core-metadata"] != false || f["data-dist-info-metadata"] != false || companion != nil || strings.Contains(page, "-metadata=") {
				t.Errorf("%s: %s\n%s", members, body, page)
			}
		case "true", "{}", "unknown":
			if fmt.Sprint(f["core-metadata"]) != fmt.Sprint(f["data-dist-info-metadata"]) || companion == nil || len(companion.Digests) != 0 ||
				!strings.Contains(page, ` data-core-metadata="true" data-dist-info-metadata="true"`) {
				t.Errorf("%s: %s\n%s", members, body, page)
			}
		default:
			core, _ := f["core-metadata"].(object)
			legacy, _ := f["data-dist-info-metadata"].(object)
			if core["sha256"] != want || legacy["sha256"] != want || companion == nil || fmt.Sprintf("%x", companion.Digests[0].Sum) != want ||
				!strings.Contains(page, ` data-core-metadata="sha256=`+want+`" data-dist-info-metadata="sha256=`+want+`"`) {
				t.Errorf("%s: %s\n%s", members, body, page)
			}
		}
	}
}

// PEP 700: "versions" names the releases of which files are served, as the index spells them, each
// once.
func TestVersions(t *testing.T) {
	doc := scanned(t, jsonSource(page(
		file("x-1.0.tar.gz")+","+file("x-1.0-py3-none-any.whl")+","+file("x-2.0.0.tar.gz")+","+file("x-3.0rc1.tar.gz")+","+file("x-4.tar.gz"),
		`"versions":["1.0","2","3.0-RC1",7,"1.0.0","9\u002e9","\ud83d"]`)))
	for _, c := range []struct {
		without []string
		want    string
	}{
		{nil, "[1.0 2 3.0-RC1 4]"},
		{[]string{"x-1.0.tar.gz"}, "[1.0 2 3.0-RC1 4]"},
		{[]string{"x-1.0.tar.gz", "x-1.0-py3-none-any.whl"}, "[2 3.0-RC1 4]"},
		{[]string{"x-2.0.0.tar.gz", "x-3.0rc1.tar.gz"}, "[1.0 4]"},
	} {
		got := decoded(t, rendered(t, pypi.FormJSON, keeping(doc, but(c.without...))).Body)
		if fmt.Sprint(got["versions"]) != c.want {
			t.Errorf("without %v: %v, want %s", c.without, got["versions"], c.want)
		}
	}
	if got := string(rendered(t, pypi.FormJSON, keeping(doc, func(string) bool { return false })).Body); !strings.Contains(got, `"versions":[]`) || !strings.Contains(got, `"files":[]`) {
		t.Error(got)
	}
}

// The rules' verdict per file reaches both forms alike: nothing of a withheld file is left in
// either (C77).
func TestOneVerdictForBothForms(t *testing.T) {
	var files []string
	for i := range 30 {
		files = append(files, file(fmt.Sprintf("x-1.%d.tar.gz", i)))
	}
	for _, src := range []registry.Source{jsonSource(page(strings.Join(files, ","))), htmlSource(anchors(30))} {
		doc := scanned(t, src)
		keep := keeping(doc, func(file string) bool { return len(file)%2 == 0 })
		asJSON, asHTML := rendered(t, pypi.FormJSON, keep), rendered(t, pypi.FormHTML, keep)
		listed := filesOf(t, decoded(t, asJSON.Body))
		for i := range 30 {
			name := fmt.Sprintf("x-1.%d.tar.gz", i)
			_, inJSON := listed[name]
			if inHTML := strings.Contains(string(asHTML.Body), ">"+name+"<"); inHTML != inJSON || inJSON != (len(name)%2 == 0) {
				t.Errorf("%s: JSON %v, HTML %v", name, inJSON, inHTML)
			}
		}
		if asJSON.Versions != asHTML.Versions || asJSON.Versions != len(listed) {
			t.Errorf("%d and %d of %d", asJSON.Versions, asHTML.Versions, len(listed))
		}
	}
}

func anchors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<a href=\"x-1.%d.tar.gz#sha256=%s\">x</a>", i, sha)
	}
	return b.String()
}

// Private and public pages are merged by file name: the earlier part has the word, also when it
// withholds the file.
func TestMerge(t *testing.T) {
	private := scanned(t, jsonSource(`{"meta":{"api-version":"1.0","_side":"private"},"name":"x","_who":"private","files":[`+
		file("x-1.0.tar.gz", `"_from":"private"`)+`,`+file("x-1.5.tar.gz", `"_from":"private"`)+`]}`))
	public := scanned(t, jsonSource(page(
		file("x-1.0-py3-none-any.whl", `"_from":"public"`)+","+strings.Replace(file("x-1.0.tar.gz", `"_from":"public"`), sha, sha2, 1)+","+
			strings.Replace(file("x-1.5.tar.gz", `"_from":"public"`), sha, strings.ToUpper(sha), 1)+","+file("x-2.tar.gz", `"_from":"public"`),
		`"versions":["1.0.0","2"]`, `"_who":"public"`)))
	r := rendered(t, pypi.FormJSON, keeping(private, but("x-1.5.tar.gz")), keeping(public, all))
	got := decoded(t, r.Body)
	files := filesOf(t, got)
	if len(files) != 3 || files["x-1.0.tar.gz"]["_from"] != "private" || files["x-2.tar.gz"]["_from"] != "public" || files["x-1.5.tar.gz"] != nil {
		t.Errorf("%v", files)
	}
	if r.Divergent != 1 || r.Versions != 3 {
		t.Errorf("%d divergent, %d files", r.Divergent, r.Versions)
	}
	if got["_who"] != "private" || got["meta"].(object)["_side"] != "private" || fmt.Sprint(got["versions"]) != "[1.0 2]" {
		t.Errorf("%v", got)
	}
	// The version of the protocol is the lower one: the private files have no size.
	if swapped := decoded(t, rendered(t, pypi.FormJSON, keeping(public, all), keeping(private, all)).Body); swapped["meta"].(object)["api-version"] != "1.0" {
		t.Errorf("%v", swapped["meta"])
	}
	// Both forms of upstream merge.
	page := scanned(t, htmlSource(`<a href="https://secret.example/x-3.0.tar.gz#sha256=`+sha+`">x</a>`))
	mixed := string(rendered(t, pypi.FormHTML, keeping(page, all), keeping(public, all)).Body)
	if strings.Count(mixed, "<a ") != 5 || strings.Index(mixed, "x-3.0") > strings.Index(mixed, "x-1.0") || strings.Contains(mixed, "secret.example") {
		t.Error(mixed)
	}
}

func TestRenderRefuses(t *testing.T) {
	doc := scanned(t, jsonSource(page("")))
	for name, v := range map[string]registry.View{
		"no parts":        {Package: pkg("x"), Form: pypi.FormJSON},
		"unknown form":    {Package: pkg("x"), Form: "xml", Parts: []registry.Part{{Document: doc}}},
		"another project": {Package: pkg("y"), Form: pypi.FormJSON, Parts: []registry.Part{{Document: doc}}},
		"foreign":         {Package: pkg("x"), Form: pypi.FormJSON, Parts: []registry.Part{{}}},
	} {
		if r, err := Render(v); err == nil {
			t.Errorf("%s: %s", name, r.Body)
		}
	}
}

// C24: credentials in the upstream's addresses are never sent, in no form.
func TestCredentialsAreNotSent(t *testing.T) {
	secret := "https://user:hunter2@secret.example/"
	asJSON := page(`{"filename":"x-1.0.tar.gz","url":"` + secret + `x-1.0.tar.gz","hashes":{},"provenance":"` + secret + `p"}`)
	asHTML := `<base href="` + secret + `"><a href="x-1.0.tar.gz#md5=` + md5sum + `" data-provenance="` + secret + `p">x</a>`
	for name, src := range map[string]registry.Source{"JSON": jsonSource(asJSON), "HTML": htmlSource(asHTML)} {
		doc := scanned(t, src)
		if names(doc) != "x-1.0.tar.gz" || doc.Versions()[0].Artifacts[0].URL != "https://secret.example/x-1.0.tar.gz" {
			t.Errorf("%s: %+v", name, doc.Versions())
		}
		for _, form := range []string{pypi.FormJSON, pypi.FormHTML} {
			if body := rendered(t, form, keeping(doc, all)).Body; strings.Contains(string(body), "hunter2") || strings.Contains(string(body), "user:") {
				t.Errorf("%s to %s: %s", name, form, body)
			}
		}
	}
}

func TestFilesKeepTheirOrder(t *testing.T) {
	doc := scanned(t, jsonSource(page(file("x-2.0.tar.gz")+","+file("x-10.0.tar.gz")+","+file("x-1.0.tar.gz"))))
	body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
	at := []int{strings.Index(body, ">x-2.0"), strings.Index(body, ">x-10.0"), strings.Index(body, ">x-1.0")}
	if !slices.IsSorted(at) || at[0] < 0 {
		t.Errorf("%v in %s", at, body)
	}
}
