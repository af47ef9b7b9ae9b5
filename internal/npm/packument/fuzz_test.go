package packument

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/fake/packument"
	"github.com/ecluse-gate/ecluse/internal/npm"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// reader decodes a value into objects of which each member given twice is decided by first.
func reader(t *testing.T, dec *json.Decoder, first bool) any {
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token
	}
	if delim == '[' {
		array := []any{}
		for dec.More() {
			array = append(array, reader(t, dec, first))
		}
		_, _ = dec.Token()
		return array
	}
	o := object{}
	for dec.More() {
		key, _ := dec.Token()
		value := reader(t, dec, first)
		if _, again := o[key.(string)]; !again || !first {
			o[key.(string)] = value
		}
	}
	_, _ = dec.Token()
	return o
}

func readBoth(t *testing.T, body []byte) [2]object {
	var both [2]object
	for i, first := range []bool{true, false} {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		both[i], _ = reader(t, dec, first).(object)
	}
	return both
}

// FuzzListing: whatever an upstream sends, it is refused with one of the two errors, or what is
// served agrees with what every reader of the original sees, the one that takes the first of two
// equal members and the one that takes the last; nothing withheld is served; and every tarball is
// ours.
func FuzzListing(f *testing.F) {
	for _, body := range []string{
		unusual, `{"name":"odd"}`, listingOf("odd", versionOf("odd", "1.0.0")+","+versionOf("odd", "2.0.0", `"scripts":{"install":"x"}`), `"dist-tags":{"latest":"2.0.0"}`),
		listingOf("odd", versionOf("odd", "1.0.0")+","+versionOf("odd", "1.0.0"), `"time":{"1.0.0":"2020-01-01T00:00:00Z","1.0.0":"2021-01-01T00:00:00Z"}`),
		`{"name":"odd","versio\u006es":{"1.0.0":{"d\u0069st":{"tarball":"t"},"dist":{"tarball":"u"}}}}`, string(packument.Generate("odd", 3, 1)),
	} {
		f.Add([]byte(body), uint8(0b101))
	}
	f.Fuzz(func(t *testing.T, body []byte, mask uint8) {
		doc, err := Scan(pkg("odd"), bytes.Clone(body))
		if err != nil {
			if !errors.Is(err, registry.ErrMalformed) && !errors.Is(err, registry.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		part := registry.Part{Document: doc}
		kept := map[string]bool{}
		for i, v := range doc.Versions() {
			part.Keep = append(part.Keep, mask>>(i%8)&1 != 0)
			kept[v.Version] = part.Keep[i]
			if doc.Lookup(v.Version) != i {
				t.Fatalf("version %q is not found", v.Version)
			}
		}
		for _, source := range readBoth(t, body) {
			agrees(t, doc, source)
		}
		for _, form := range []string{npm.FormFull, npm.FormAbbreviated} {
			served(t, rendered(t, "odd", form, part).Body, kept)
		}
	})
}

// agrees checks the facts against the original as one reader sees it.
func agrees(t *testing.T, doc registry.Document, source object) {
	if source["name"] != "odd" {
		t.Fatalf("the document is for %v", source["name"])
	}
	versions, _ := source["versions"].(object)
	times, _ := source["time"].(object)
	for _, v := range doc.Versions() {
		original, _ := versions[v.Version].(object)
		dist, _ := original["dist"].(object)
		if dist["tarball"] != v.Artifacts[0].URL {
			t.Fatalf("%s: tarball %v, facts %q", v.Version, dist["tarball"], v.Artifacts[0].URL)
		}
		at, _ := times[v.Version].(string)
		if !parseTime(at).Equal(v.Published) {
			t.Fatalf("%s: published %q, facts %v", v.Version, at, v.Published)
		}
		scripts, _ := original["scripts"].(object)
		for _, s := range []string{"preinstall", "install", "postinstall"} {
			if text, _ := scripts[s].(string); text != "" && !v.InstallScripts {
				t.Fatalf("%s: %s runs %q, unknown to the facts", v.Version, s, text)
			}
		}
		if original["hasInstallScript"] == true && !v.InstallScripts {
			t.Fatalf("%s: hasInstallScript, unknown to the facts", v.Version)
		}
	}
}

// served checks a rendering as both readers see it.
func served(t *testing.T, body []byte, kept map[string]bool) {
	if !json.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
	for _, got := range readBoth(t, body) {
		versions := got["versions"].(object)
		for version, v := range versions {
			if !kept[version] {
				t.Fatalf("%s is served, but not admitted", version)
			}
			tarball, _ := v.(object)["dist"].(object)["tarball"].(string)
			if tarball != mount+"/odd/-/odd-"+version+".tgz" {
				t.Fatalf("tarball %q", tarball)
			}
		}
		for version, keep := range kept {
			if keep && versions[version] == nil {
				t.Fatalf("%s is admitted, but not served", version)
			}
		}
		times, _ := got["time"].(object)
		for name := range times {
			if name != "created" && name != "modified" && name != "unpublished" && !kept[name] {
				t.Fatalf("time of %s", name)
			}
		}
		for name, version := range got["dist-tags"].(object) {
			if !kept[version.(string)] {
				t.Fatalf("tag %s points to %s", name, version)
			}
		}
	}
	if strings.Contains(string(body), "_distfiles\":") && json.Valid(body) && readBoth(t, body)[0]["_distfiles"] != nil {
		t.Fatal("bookkeeping is served")
	}
}
