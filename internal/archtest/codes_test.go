package archtest_test

import (
	"testing"

	"github.com/ecluse-gate/ecluse/internal/archtest"
)

// The page is written as the tests would have it: codes in order, rows to be filled in, what people
// wrote kept.
func TestRequirementsAreWritten(t *testing.T) {
	files := sound()
	files["mid/a_test.go"] = "package mid_test\n\n// R7 R10 C11: it holds.\nfunc TestB() {}\n\n// R7 R1\nvar x = 1\n" +
		"\n// R10\nfunc helper() {}\n\nfunc TestA() {\n\t// R7, R8\n}\n"
	files["side/sidetest/a.go"] = "package sidetest\n\n// TestSide is R8.\nfunc TestSide() {}\n"
	_, page := archtest.Check(tree(files), "m")
	const a = "[mid/a_test.go](../mid/a_test.go)"
	want := "# Codes\n\n| code | what holds | tests |\n|---|---|---|\n" +
		"| R1 |  | " + a + " |\n" +
		"| R7 | seven | " + a + " |\n" +
		"| R8 |  | " + a + ", [side/sidetest/a.go](../side/sidetest/a.go) |\n" +
		"| R9 | nine | not built yet |\n" +
		"| R10 |  | " + a + " |\n" +
		"\n## C\n\n| code | what holds | tests |\n|---|---|---|\n| C11 |  | " + a + " |\n"
	if page != want {
		t.Errorf("the page is\n%s\nwant\n%s", page, want)
	}
	files[archtest.Requirements] = page
	if _, again := archtest.Check(tree(files), "m"); again != page {
		t.Errorf("written again it is\n%s", again)
	}
}
