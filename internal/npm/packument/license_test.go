package packument

import "testing"

// The licence that licence rules read: an expression as it stands, the type of the older form, and
// nothing where neither is given. Given twice, the version is dropped: readers would disagree.
func TestLicense(t *testing.T) {
	for member, want := range map[string]string{
		`"license":"MIT"`:                             "MIT",
		`"license":"(MIT OR Apache-2.0)"`:             "(MIT OR Apache-2.0)",
		`"license":"M\u0049T"`:                        "MIT",
		`"license":{"type":"ISC","url":"x"}`:          "ISC",
		`"license":{"url":{"type":"MIT"}}`:            "",
		`"license":{"type":"ISC","type":"MIT"}`:       "",
		`"license":{"type":["ISC"]}`:                  "",
		`"license":{}`:                                "",
		`"license":["MIT"]`:                           "",
		`"license":null`:                              "",
		`"licenses":[{"type":"MIT"}]`:                 "",
		`"x":{"license":"MIT"}`:                       "",
		`"license":"SEE LICENSE IN LICENSE","y":true`: "SEE LICENSE IN LICENSE",
	} {
		doc, err := Scan(pkg("x"), []byte(listingOf("x", versionOf("x", "1.0.0", member)+","+versionOf("x", "2.0.0"))))
		if err != nil || doc.Dropped() != 0 || doc.Versions()[0].License != want || doc.Versions()[1].License != "" {
			t.Errorf("%s: %+v, %v", member, doc, err)
		}
	}
	doc, err := Scan(pkg("x"), []byte(listingOf("x", versionOf("x", "1.0.0", `"license":"MIT","license":"GPL-3.0-only"`)+","+versionOf("x", "2.0.0"))))
	if err != nil || doc.Dropped() != 1 {
		t.Errorf("twice: %+v, %v", doc, err)
	}
}
