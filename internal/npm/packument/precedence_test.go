package packument

import (
	"math/rand/v2"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// Ranks never contradict precedence (semver, section 11), whatever the numbers are, and older
// agrees with another implementation.
func TestRanks(t *testing.T) {
	numbers := []string{"0", "1", "2", "9", "10", "20230101", "1048574", "1048575", "1048576", "4294967296", "9007199254740990", "9007199254740991"}
	ends := []string{"", "", "-0", "-alpha", "-alpha.1", "-rc.10", "+b"}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of []string) string { return of[random.IntN(len(of))] }
	made := func() string { return pick(numbers) + "." + pick(numbers) + "." + pick(numbers) + pick(ends) }
	told := 0
	for range 20_000 {
		v, w := made(), made()
		r, q := readCore(v).rank(), readCore(w).rank()
		want := semver.MustParse(v).LessThan(semver.MustParse(w))
		if got := older(v, r, w, q); got != want {
			t.Fatalf("%s is older than %s: %v", v, w, got)
		}
		if r == 0 || q == 0 || r < q && !want {
			t.Fatalf("%s has rank %x, %s has %x", v, r, w, q)
		}
		if r != q {
			told++
		}
	}
	if told < 14_000 {
		t.Errorf("%d of 20000 pairs are told apart by their ranks", told)
	}
	for _, version := range []string{"", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3.4", "1.0beta"} {
		if r := readCore(version).rank(); r != 0 {
			t.Errorf("%q has rank %x", version, r)
		}
	}
}
