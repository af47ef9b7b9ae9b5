package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/pypi"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// anchorOf is the rendered link to a file.
func anchorOf(t *testing.T, doc registry.Document, name string) string {
	t.Helper()
	for line := range strings.Lines(string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)) {
		if strings.Contains(line, ">"+name+"</a>") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no link to %s", name)
	return ""
}

// C64: the reason of a yank goes through unchanged, in both forms and from either; an attribute
// without a value is a yank without a reason.
func TestYankedReason(t *testing.T) {
	reason := `Required python version not configured; use "x" <2 & 'y' — ü` + "\r\n\t\\"
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&#34;", "\r", "&#13;").Replace(reason)
	inJSON := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`, "\n", `\n`, "\t", `\t`, "ü", `\u00fc`).Replace(reason)
	link := mount + "/files/x/x-1.0.tar.gz"
	for name, c := range map[string]struct {
		src  registry.Source
		json any
		html string
	}{
		"reason in JSON": {jsonSource(page(file("x-1.0.tar.gz", `"yanked":"`+inJSON+`"`))), reason, ` data-yanked="` + escaped + `"`},
		"reason in HTML": {htmlSource(`<a href="x-1.0.tar.gz" data-yanked="` + escaped + `">x</a>`), reason, ` data-yanked="` + escaped + `"`},
		"true in JSON":   {jsonSource(page(file("x-1.0.tar.gz", `"yanked":true`))), true, ` data-yanked=""`},
		// C66
		"no value in HTML":    {htmlSource(`<a data-yanked href="x-1.0.tar.gz">x</a>`), true, ` data-yanked=""`},
		"empty value in HTML": {htmlSource(`<a href="x-1.0.tar.gz" data-yanked=''>x</a>`), true, ` data-yanked=""`},
		"false in JSON":       {jsonSource(page(file("x-1.0.tar.gz", `"yanked":false`))), false, ""},
		"null in JSON":        {jsonSource(page(file("x-1.0.tar.gz", `"yanked":null`))), nil, ""},
		// falsy: not yanked (PEP 691)
		"empty in JSON":  {jsonSource(page(file("x-1.0.tar.gz", `"yanked":""`))), "", ""},
		"the word false": {jsonSource(page(file("x-1.0.tar.gz", `"yanked":"false"`))), "false", ` data-yanked="false"`},
		"no attribute":   {htmlSource(`<a href="x-1.0.tar.gz">x</a>`), nil, ""},
	} {
		doc := scanned(t, c.src)
		got := filesOf(t, decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body))["x-1.0.tar.gz"]["yanked"]
		if got != c.json {
			t.Errorf("%s: %q, want %q", name, got, c.json)
		}
		body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
		if hash := "#sha256=" + sha; strings.Contains(body, hash) {
			body = strings.Replace(body, hash, "", 1)
		}
		if want := `<a href="` + link + `"` + c.html + `>x-1.0.tar.gz</a><br>`; !strings.Contains(body, want) {
			t.Errorf("%s: %s\nwant %s", name, body, want)
		}
	}
}

// C67: requires-python stays with its file, and is escaped in HTML.
func TestRequiresPython(t *testing.T) {
	for name, src := range map[string]registry.Source{
		"JSON": jsonSource(page(file("x-1.0-cp39-abi3-any.whl", `"requires-python":">=3.9,<4"`) + "," + file("x-1.0-py3-none-any.whl", `"requires-python":">=3.6"`) + "," +
			file("x-1.0.tar.gz", `"requires-python":null`))),
		"HTML": htmlSource(`<a href="x-1.0-cp39-abi3-any.whl" data-requires-python="&gt;=3.9,&lt;4">a</a><a href="x-1.0-py3-none-any.whl" data-requires-python='>=3.6'>b</a>` +
			`<a href=x-1.0.tar.gz data-requires-python>c</a>`),
	} {
		doc := scanned(t, src)
		files := filesOf(t, decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body))
		if files["x-1.0-cp39-abi3-any.whl"]["requires-python"] != ">=3.9,<4" || files["x-1.0-py3-none-any.whl"]["requires-python"] != ">=3.6" ||
			files["x-1.0.tar.gz"]["requires-python"] != nil {
			t.Errorf("%s: %v", name, files)
		}
		if a := anchorOf(t, doc, "x-1.0-cp39-abi3-any.whl"); !strings.Contains(a, ` data-requires-python="&gt;=3.9,&lt;4"`) {
			t.Errorf("%s: %s", name, a)
		}
		if a := anchorOf(t, doc, "x-1.0-py3-none-any.whl"); !strings.Contains(a, ` data-requires-python="&gt;=3.6"`) {
			t.Errorf("%s: %s", name, a)
		}
		if a := anchorOf(t, doc, "x-1.0.tar.gz"); strings.Contains(a, "requires") {
			t.Errorf("%s: %s", name, a)
		}
	}
}

// C23: links are read against the address that answered, and against the base element; ours point
// below the mount.
func TestLinksOfAPage(t *testing.T) {
	for name, c := range map[string]struct{ html, want string }{
		"relative":                {`<a href="../../packages/ab/cd/x-1.0.tar.gz#sha256=` + sha + `">x</a>`, "https://secret.example/packages/ab/cd/x-1.0.tar.gz"},
		"of the page":             {`<a href="x-1.0.tar.gz">x</a>`, "https://secret.example/simple/x/x-1.0.tar.gz"},
		"of the host":             {`<a href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"without a scheme":        {`<a href="//files.example/x-1.0.tar.gz">x</a>`, "https://files.example/x-1.0.tar.gz"},
		"absolute":                {`<a href="https://files.example/x-1.0.tar.gz?v=1">x</a>`, "https://files.example/x-1.0.tar.gz?v=1"},
		"base":                    {`<base href="https://files.example/a/"><a href="x-1.0.tar.gz">x</a>`, "https://files.example/a/x-1.0.tar.gz"},
		"relative base":           {`<base href="/files/"><a href="x-1.0.tar.gz">x</a>`, "https://secret.example/files/x-1.0.tar.gz"},
		"base after the link":     {`<a href="x-1.0.tar.gz">x</a><base href="/late/">`, "https://secret.example/late/x-1.0.tar.gz"},
		"broken base":             {`<base href="http://[::1"><a href="x-1.0.tar.gz">x</a>`, "https://secret.example/simple/x/x-1.0.tar.gz"},
		"first base counts":       {`<base target=_top><base href="/one/"><base href="/two/"><a href="x-1.0.tar.gz">x</a>`, "https://secret.example/one/x-1.0.tar.gz"},
		"white space around":      {"<a href=\"\n  x-1.0.tar.gz\t\">x</a>", "https://secret.example/simple/x/x-1.0.tar.gz"},
		"line break within":       {"<a href=\"x-1.0\n.tar.gz\">x</a>", "https://secret.example/simple/x/x-1.0.tar.gz"},
		"entities":                {`<a href="&#47;p&sol;x-1.0.tar.gz?a=1&amp;b=2">x</a>`, "https://secret.example/p/x-1.0.tar.gz?a=1&b=2"},
		"percent-encoded":         {`<a href="/p/x-1.0%2Blocal.1-py3-none-any.whl">x</a>`, "https://secret.example/p/x-1.0%2Blocal.1-py3-none-any.whl"},
		"unquoted":                {`<a href=/x-1.0.tar.gz>x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"upper case":              {`<A HREF="/x-1.0.tar.gz">x</A>`, "https://secret.example/x-1.0.tar.gz"},
		"unclosed tags":           {`<html><body><p><b><a href="/x-1.0.tar.gz">x`, "https://secret.example/x-1.0.tar.gz"},
		"unclosed title":          {`<title>Links<a href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"unclosed noscript":       {`<noscript><a href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"self-closing":            {`<a href="/x-1.0.tar.gz"/>`, "https://secret.example/x-1.0.tar.gz"},
		"attribute twice, alike":  {`<a href="/x-1.0.tar.gz" href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"attribute twice":         {`<a href="/x-1.0.tar.gz" href="/x-2.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"text that says another":  {`<a href="/x-1.0.tar.gz">y-2.0.tar.gz</a>`, "https://secret.example/x-1.0.tar.gz"},
		"in a comment beside one": {`<!-- <a href="/x-2.0.tar.gz">x</a> --><a href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"in a script beside one":  {`<script>"<a href='/x-2.0.tar.gz'>"</script><a href="/x-1.0.tar.gz">x</a>`, "https://secret.example/x-1.0.tar.gz"},
		"other links beside":      {`<a href="../">Parent</a><a>none</a><a href="">empty</a><a href="/x-1.0.tar.gz.asc">sig</a><a href="/x-1.0.tar.gz">x</a><a href="mailto:a@b">`, "https://secret.example/x-1.0.tar.gz"},
	} {
		doc := scanned(t, htmlSource(c.html))
		if len(doc.Versions()) != 1 || doc.Dropped() != 0 || doc.Versions()[0].Artifacts[0].URL != c.want {
			t.Errorf("%s: %+v, dropped %d", name, doc.Versions(), doc.Dropped())
			continue
		}
		name := doc.Versions()[0].Artifacts[0].File
		if a := anchorOf(t, doc, name); !strings.HasPrefix(a, `<a href="`+mount+"/files/x/"+name) {
			t.Error(a)
		}
	}
}

// Links to files that cannot be read are dropped and counted, one by one.
func TestDroppedLinks(t *testing.T) {
	for name, bad := range map[string]string{
		"another project":          `<a href="y-1.0.tar.gz">y</a>`,
		"another scheme":           `<a href="ftp://h.example/x-2.0.tar.gz">x</a>`,
		"script":                   `<a href="javascript:x-2.0.tar.gz">x</a>`,
		"no host":                  `<a href="https:///x-2.0.tar.gz">x</a>`,
		"bad escapes":              `<a href="/x-2.0%zz.tar.gz">x</a>`,
		"an encoded slash":         `<a href="/x-2.0%2f..%2fa.tar.gz">x</a>`,
		"control characters":       "<a href=\"/x-2.0\x01.tar.gz\">x</a>",
		"invalid UTF-8":            "<a href=\"/x-2.0.tar.gz\" data-yanked=\"\xff\">x</a>",
		"a digest that is none":    `<a href="/x-2.0.tar.gz#sha256=abc">x</a>`,
		"two digests":              `<a href="/x-2.0.tar.gz#sha256=` + sha + `&amp;sha256=` + sha2 + `">x</a>`,
		"a companion's bad digest": `<a href="/x-2.0.tar.gz" data-core-metadata="sha256=abc">x</a>`,
		"same name, other bytes":   `<a href="/x-2.0.tar.gz#sha256=` + sha + `">x</a><a href="/x-2.0.tar.gz#sha256=` + sha2 + `">x</a>`,
		"same name, other place":   `<a href="/a/x-2.0.tar.gz">x</a><a href="/b/x-2.0.tar.gz">x</a>`,
	} {
		doc := scanned(t, htmlSource(bad+`<a href="x-1.0.tar.gz">x</a>`))
		if want := strings.Count(bad, "<a "); names(doc) != "x-1.0.tar.gz" || doc.Dropped() != want {
			t.Errorf("%s: %q, dropped %d", name, names(doc), doc.Dropped())
		}
	}
}

// C24: digests of a fragment stay what they are; none is made up.
func TestFragments(t *testing.T) {
	for fragment, want := range map[string]string{
		"":                         "map[]",
		"#":                        "map[]",
		"#md5=" + md5sum:           "map[md5:" + md5sum + "]",
		"#sha256=" + sha:           "map[sha256:" + sha + "]",
		"#egg=x-1.0":               "map[]",
		"#egg=x&amp;md5=" + md5sum: "map[md5:" + md5sum + "]",
		"#sha3_256=00":             "map[sha3_256:00]",
		"#md5":                     "map[]",
		"#sha256=" + sha + "&amp;md5=" + md5sum + "&amp;sub=1": "map[md5:" + md5sum + " sha256:" + sha + "]",
	} {
		doc := scanned(t, htmlSource(`<a href="x-1.0.tar.gz`+fragment+`">x</a>`))
		hashes := filesOf(t, decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body))["x-1.0.tar.gz"]["hashes"]
		if got := fmt.Sprint(hashes); got != want {
			t.Errorf("%s: %s, want %s", fragment, got, want)
		}
		a := anchorOf(t, doc, "x-1.0.tar.gz")
		switch {
		case strings.Contains(want, "sha256:"+sha):
			if !strings.Contains(a, `x-1.0.tar.gz#sha256=`+sha+`"`) {
				t.Errorf("%s: %s", fragment, a)
			}
		case strings.Contains(want, "md5"):
			if !strings.Contains(a, `x-1.0.tar.gz#md5=`+md5sum+`"`) {
				t.Errorf("%s: %s", fragment, a)
			}
		case strings.Contains(a, "#"):
			t.Errorf("%s: %s", fragment, a)
		}
	}
}

// PEP 658 in HTML: "true", or one digest; what is neither advertises nothing, and the core
// attribute comes first.
func TestCompanionAttributes(t *testing.T) {
	for attributes, want := range map[string]string{
		`data-core-metadata="sha256=` + sha + `"`:                                               "map[sha256:" + sha + "]",
		`data-dist-info-metadata="sha256=` + sha + `"`:                                          "map[sha256:" + sha + "]",
		`data-dist-info-metadata="sha256=` + sha2 + `" data-core-metadata="sha256=` + sha + `"`: "map[sha256:" + sha + "]",
		`data-core-metadata="true"`:                                                             "true",
		`data-core-metadata=true data-dist-info-metadata`:                                       "true",
		`data-core-metadata`:                                                                    "<nil>",
		`data-core-metadata="false"`:                                                            "<nil>",
		``:                                                                                      "<nil>",
	} {
		doc := scanned(t, htmlSource(`<a href="x-1.0-py3-none-any.whl" `+attributes+`>x</a>`))
		f := filesOf(t, decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body))["x-1.0-py3-none-any.whl"]
		if got := fmt.Sprint(f["core-metadata"]); got != want || fmt.Sprint(f["data-dist-info-metadata"]) != want {
			t.Errorf("%s: %v, want %s", attributes, f, want)
		}
		if has := doc.Versions()[0].Artifacts[0].Companion != nil; has != (want != "<nil>") {
			t.Errorf("%s: companion %v", attributes, has)
		}
	}
}

// PEP 792, PEP 708, PEP 740, PEP 503's signatures: what a page says beside its files goes through,
// from both forms to both.
func TestWhatAPageSaysBeside(t *testing.T) {
	asJSON := `{"meta":{"api-version":"1.4","tracks":["https://a.example/x/"]},"name":"x","project-status":{"status":"archived","reason":"not \"kept\" & <old>"},` +
		`"alternate-locations":["https://b.example/x/"],"files":[` + file("x-1.0.tar.gz", `"gpg-sig":true`, `"provenance":"https://pypi.org/integrity/x?a=1&b"`) + `]}`
	asHTML := `<meta name="pypi:repository-version" content="1.4"><meta name="pypi:project-status" content="archived">` +
		`<meta content='not "kept" &amp; &lt;old>' name="pypi:project-status-reason"><meta name="pypi:tracks" content="https://a.example/x/">` +
		`<meta name="pypi:alternate-locations" content="https://b.example/x/">` +
		`<a href="x-1.0.tar.gz" data-gpg-sig="true" data-provenance="https://pypi.org/integrity/x?a=1&amp;b">x</a>`
	for name, src := range map[string]registry.Source{"JSON": jsonSource(asJSON), "HTML": htmlSource(asHTML)} {
		doc := scanned(t, src)
		body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
		for _, want := range []string{
			`<meta name="pypi:project-status" content="archived">`, `<meta name="pypi:project-status-reason" content="not &#34;kept&#34; &amp; &lt;old&gt;">`,
			`<meta name="pypi:tracks" content="https://a.example/x/">`, `<meta name="pypi:alternate-locations" content="https://b.example/x/">`,
			` data-gpg-sig="true" data-provenance="` + mount + `/files/x/x-1.0.tar.gz.provenance"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", name, want, body)
			}
		}
		page := decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body)
		f := filesOf(t, page)["x-1.0.tar.gz"]
		if status := page["project-status"].(object); status["status"] != "archived" || status["reason"] != `not "kept" & <old>` ||
			fmt.Sprint(page["alternate-locations"], page["meta"].(object)["tracks"]) != "[https://b.example/x/] [https://a.example/x/]" ||
			f["gpg-sig"] != true || f["provenance"] != mount+"/files/x/x-1.0.tar.gz.provenance" || Proof(doc, 0) != "https://pypi.org/integrity/x?a=1&b" {
			t.Errorf("%s: %v", name, page)
		}
	}
}

// A page that is no project page (a request to sign in, an error in HTML) is malformed, and never
// an empty project (C55). A real project without files is empty.
func TestPagesThatAreNone(t *testing.T) {
	for name, body := range map[string]string{
		"empty":       "",
		"sign in":     `<html><head><title>Sign in</title></head><body><form action="/login"></form><a href="/help">Help</a></body></html>`,
		"maintenance": `<h1>We are down</h1>`,
		"version 2":   `<meta name="pypi:repository-version" content="2.0"><title>Links for x</title><a href="x-1.0.tar.gz">x</a>`,
	} {
		if doc, err := Scan(pkg("x"), htmlSource(body)); !errors.Is(err, registry.ErrMalformed) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		}
	}
	for name, body := range map[string]string{
		"by its version": `<meta name="pypi:repository-version" content="1.0"><body></body>`,
		"by its title":   "<title>\n Links for x</title>",
		"by its heading": `<h1> <b>links for X</b></h1>`,
	} {
		if doc := scanned(t, htmlSource(body)); len(doc.Versions()) != 0 || doc.Dropped() != 0 {
			t.Errorf("%s: %+v", name, doc.Versions())
		}
	}
	for name, body := range map[string]string{
		"a tag without an end": `<title>Links for x</title><a href="` + strings.Repeat("x", 2<<20),
		"endless links":        `<title>Links for x</title>` + strings.Repeat("<a href=>", 200_002),
	} {
		if doc, err := Scan(pkg("x"), htmlSource(body)); !errors.Is(err, registry.ErrTooLarge) || doc != nil {
			t.Errorf("%s: %v, %v", name, doc, err)
		}
	}
}

// C66: what is sent is clean HTML, whatever came in: each attribute quoted, nothing of the page's
// own markup in it.
func TestHostileValues(t *testing.T) {
	evil := `\"><script>alert(1)</script><a href=\"https://evil.example/x-9.tar.gz\">`
	doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz", `"yanked":"`+evil+`"`, `"requires-python":"`+evil+`"`, `"provenance":"https://h.example/`+evil+`"`),
		`"project-status":{"status":"`+evil+`","reason":"`+evil+`"}`)))
	body := string(rendered(t, pypi.FormHTML, keeping(doc, all)).Body)
	if strings.Contains(body, "<script") || strings.Count(body, "<a ") != 1 || strings.Count(body, "<meta ") != 4 {
		t.Error(body)
	}
	again, err := Scan(pkg("x"), htmlSource(body))
	if err != nil || names(again) != "x-1.0.tar.gz" {
		t.Errorf("%v: %v", err, again)
	}
}

// C68: a file belongs to the release that its name says, and one odd file does not hide the others.
func TestReleaseByFileName(t *testing.T) {
	doc := scanned(t, jsonSource(page(file("x-4.0.8-py3-none-any.whl", `"_metadata":"4.0.7"`)+","+file("x-4.0.7.tar.gz")+","+file("x-odd.tar.gz"), `"versions":["4.0.7"]`)))
	if v := doc.Versions(); len(v) != 2 || v[0].Version != "4.0.8" || v[1].Version != "4.0.7" || doc.Dropped() != 1 {
		t.Errorf("%+v", v)
	}
	if got := decoded(t, rendered(t, pypi.FormJSON, keeping(doc, all)).Body); fmt.Sprint(got["versions"]) != "[4.0.7 4.0.8]" {
		t.Errorf("%v", got["versions"])
	}
}

// C14: what a JSON upstream says of sizes and upload times reaches a client that asks for JSON;
// from HTML it cannot be had and is not invented.
func TestSizesAndTimes(t *testing.T) {
	doc := scanned(t, jsonSource(page(file("x-1.0.tar.gz", `"size":12345678901`, `"upload-time":"2020-01-02T03:04:05.678901Z"`), `"versions":["1.0"]`)))
	got := string(rendered(t, pypi.FormJSON, keeping(doc, all)).Body)
	if !strings.Contains(got, `"size":12345678901,"upload-time":"2020-01-02T03:04:05.678901Z"`) || !strings.Contains(got, `"versions":["1.0"]`) || !strings.Contains(got, `"api-version":"1.1"`) {
		t.Error(got)
	}
	from := string(rendered(t, pypi.FormJSON, keeping(scanned(t, htmlSource(`<meta name="pypi:repository-version" content="1.4"><a href="x-1.0.tar.gz">x</a>`)), all)).Body)
	if strings.Contains(from, "size") || strings.Contains(from, "upload-time") || !strings.Contains(from, `"api-version":"1.0"`) {
		t.Error(from)
	}
}
