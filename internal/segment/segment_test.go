package segment

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The checksum of a whole from the checksums of its parts is what hash/crc32 says of the whole.
func TestCombinedChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "a")
		b := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "b"), rapid.IntRange(0, 5000).Draw(t, "times"))
		got := multiply(shift(len(b)), crc32.ChecksumIEEE(a)) ^ crc32.ChecksumIEEE(b)
		if want := crc32.ChecksumIEEE(slices.Concat(a, b)); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
	if shift(0) != one || shift(1) != x8 {
		t.Error("the smallest shifts are wrong")
	}
	for _, n := range []int{1 << 20, 1<<24 + 5} { // zeros, without the bytes
		if got := crc32.Update(crc32.ChecksumIEEE([]byte("x")), crc32.IEEETable, make([]byte, n)); got != multiply(shift(n), crc32.ChecksumIEEE([]byte("x")))^crc32.ChecksumIEEE(make([]byte, n)) {
			t.Errorf("%d zeros: %08x", n, got)
		}
	}
}

// unpacked reads a body's gzip form with the standard library, and fails unless it is one member with nothing behind it.
func unpacked(t interface {
	Helper()
	Fatal(args ...any)
}, b *Body,
) []byte {
	t.Helper()
	in := bytes.NewReader(b.Gzip())
	zr, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	zr.Multistream(false)
	out, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if in.Len() != 0 {
		t.Fatal(in.Len(), "bytes behind the member")
	}
	return out
}

// items is a body of lines, of which some are kept, cut after every few lines whether they are kept or not.
func items(lines []string, keep []bool, every int) (body []byte, cuts []int) {
	body = []byte("{")
	for i, line := range lines {
		if i%every == 0 {
			cuts = append(cuts, len(body))
		}
		if keep[i] {
			body = append(body, line...)
		}
	}
	return append(body, '}'), cuts
}

func lines(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"1.%d.0":{"name":"x","sum":"%016x%016x","text":%q},`, i, r.Uint64(), r.Uint64(), strings.Repeat("all the same ", r.IntN(80)))
	}
	return out
}

// Whatever is kept, and whatever was kept before, the packed form unpacks to the plain one; and no run is compressed that the body before
// had.
func TestBodiesInARow(t *testing.T) {
	all := lines(500)
	rapid.Check(t, func(t *rapid.T) {
		keep := make([]bool, len(all))
		every := rapid.IntRange(10, 200).Draw(t, "every")
		var prior *Body
		for range rapid.IntRange(1, 4).Draw(t, "bodies") {
			from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
			for i := range rapid.IntRange(0, len(all)-from).Draw(t, "many") {
				keep[from+i] = !keep[from+i]
			}
			plain, cuts := items(all, keep, every)
			if rapid.Bool().Draw(t, "strange cuts") {
				cuts = append([]int{-1, 0, 0, 5}, append(cuts, len(plain), len(plain)+7)...)
			}
			b := New(plain, cuts, prior)
			if !bytes.Equal(b.Plain(), plain) || !bytes.Equal(unpacked(t, b), plain) {
				t.Fatal("another body")
			}
			for i, r := range b.runs {
				start, taken, there := 0, false, false
				if i > 0 {
					start = b.runs[i-1].end
				}
				for _, old := range newKnown(prior).runs {
					if bytes.Equal(old.plain, plain[start:r.end]) && old.sum != r.sum {
						t.Fatal("the sum of other bytes")
					}
					taken = taken || old.run == r.run
					there = there || bytes.Equal(old.plain, plain[start:r.end])
				}
				if taken != there {
					t.Fatalf("run %d: known %t, taken over %t", i, there, taken)
				}
			}
			prior = b
		}
	})
}

// One line that comes or goes changes one run; its neighbours are shared, packed form and all.
func TestOnlyWhatChanged(t *testing.T) {
	all := lines(1500)
	keep := slices.Repeat([]bool{true}, len(all))
	plain, cuts := items(all, keep, 64)
	first := New(plain, cuts, nil)
	first.Gzip()
	keep[700] = false
	plain, cuts = items(all, keep, 64)
	second := New(plain, cuts, first)
	fresh := 0
	for _, r := range second.runs {
		if r.size.Load() == 0 {
			fresh++
		}
	}
	if fresh != 1 || len(second.runs) != len(first.runs) || len(second.runs) < 20 {
		t.Errorf("%d of %d runs are new", fresh, len(second.runs))
	}
	if !bytes.Equal(unpacked(t, second), plain) {
		t.Error("another body")
	}
	if first.Sum() == second.Sum() || second.Sum() != New(plain, cuts, nil).Sum() {
		t.Error("the sum does not follow the bytes")
	}
}

// Two runs of one length and one CRC-32 are not the same run: what decides is the bytes.
func TestSameChecksumOtherBytes(t *testing.T) {
	// XOR with the polynomial leaves the checksum as it is: 33 bits, in the order in which CRC-32 reads them.
	forge := func(b []byte) {
		b[0] ^= 1
		for bit := range 32 {
			if crc32.IEEE>>bit&1 != 0 {
				b[(bit+1)/8] ^= 1 << ((bit + 1) % 8)
			}
		}
	}
	plain := bytes.Repeat([]byte("0123456789abcdef"), Small/8)
	other := bytes.Clone(plain)
	forge(other)
	if bytes.Equal(plain, other) || crc32.ChecksumIEEE(plain) != crc32.ChecksumIEEE(other) {
		t.Fatal("the forgery failed")
	}
	first := New(plain, nil, nil)
	first.Gzip()
	second := New(other, nil, first)
	if !bytes.Equal(unpacked(t, second), other) || first.Sum() == second.Sum() {
		t.Error("the bytes of another body")
	}
}

// Bodies that share runs may be packed at once; what each costs counts what it holds.
func TestPackedAtOnce(t *testing.T) {
	all := lines(1500)
	keep := slices.Repeat([]bool{true}, len(all))
	plain, cuts := items(all, keep, 64)
	first := New(plain, cuts, nil)
	before := first.Cost()
	var group sync.WaitGroup
	for i := range 4 {
		keep[i*100] = false
		next, cuts := items(all, keep, 64)
		b := New(next, cuts, first)
		for range 2 {
			group.Go(func() {
				b.Cost()
				if !bytes.Equal(unpacked(t, b), next) {
					t.Error("another body")
				}
			})
		}
		group.Go(func() { first.Gzip() })
	}
	group.Wait()
	if grown, packed := first.Cost()-before, int64(len(first.Gzip())); before < int64(len(plain)) || grown < 2*packed-100 || grown > 2*packed {
		t.Errorf("cost %d for %d bytes, %d more for %d packed", before, len(plain), grown, packed)
	}
}

// Small and empty bodies are one run.
func TestSmallBodies(t *testing.T) {
	for _, n := range []int{0, 1, Small, Small + 1} {
		b := New(make([]byte, n), []int{0, n / 2, n}, nil)
		if !bytes.Equal(unpacked(t, b), make([]byte, n)) {
			t.Errorf("%d bytes: another body", n)
		}
		if want := 1 + n/(Small+1); len(b.runs) != want {
			t.Errorf("%d bytes: %d runs, want %d", n, len(b.runs), want)
		}
	}
}

// Readers that others wrote take a member that was put together.
func TestOtherReaders(t *testing.T) {
	all := lines(3000)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 64)
	b := New(plain, cuts, nil)
	for name, command := range map[string][]string{
		"gzip -t": {"gzip", "-t"},
		"gzip":    {"gzip", "-dc"},
		"node":    {"node", "-e", `process.stdout.write(require("zlib").gunzipSync(require("fs").readFileSync(0)))`},
		"node, streaming": {
			"node", "-e", `process.stdin.pipe(require("zlib").createGunzip()).pipe(process.stdout)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skipf("SKIPPED: %s is not installed", command[0])
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Stdin = bytes.NewReader(b.Gzip())
			var complaint strings.Builder
			cmd.Stderr = &complaint
			out, err := cmd.Output()
			if err != nil || complaint.Len() > 0 {
				t.Fatalf("%v: %s", err, complaint.String())
			}
			if command[len(command)-1] != "-t" && !bytes.Equal(out, plain) {
				t.Errorf("%d bytes instead of %d", len(out), len(plain))
			}
		})
	}
}
