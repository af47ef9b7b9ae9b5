package segment

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
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

// failing is what of a test the readers of a form need.
type failing interface {
	Helper()
	Fatal(args ...any)
}

// forms are what a body is packed in, with a reader of each that is not the writer's, or is strict.
var forms = map[string]struct {
	pack func(*Body) []byte
	read func(failing, []byte) []byte
	of   func(*run) *form
}{
	"gzip": {(*Body).Gzip, gunzip, func(r *run) *form { return &r.deflate }},
	"zstd": {(*Body).Zstd, unzstd, func(r *run) *form { return &r.zstd }},
}

// gunzip reads with the standard library, and fails unless it is one member with nothing behind it.
func gunzip(t failing, packed []byte) []byte {
	t.Helper()
	in := bytes.NewReader(packed)
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

var zstdReader = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(Window))
	if err != nil {
		panic(err)
	}
	return d
})

// unzstd reads with no more window than is promised.
func unzstd(t failing, packed []byte) []byte {
	t.Helper()
	out, err := zstdReader().DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpacked is a body's packed forms read again, which must be one.
func unpacked(t failing, b *Body) []byte {
	t.Helper()
	out := gunzip(t, b.Gzip())
	if other := unzstd(t, b.Zstd()); !bytes.Equal(out, other) {
		t.Fatal("the forms are of different bodies")
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
	for name, f := range forms {
		keep := slices.Repeat([]bool{true}, len(all))
		plain, cuts := items(all, keep, 64)
		first := New(plain, cuts, nil)
		f.pack(first)
		keep[700] = false
		plain, cuts = items(all, keep, 64)
		second := New(plain, cuts, first)
		fresh := 0
		for _, r := range second.runs {
			if f.of(r.run).size.Load() == 0 {
				fresh++
			}
		}
		if fresh != 1 || len(second.runs) != len(first.runs) || len(second.runs) < 20 {
			t.Errorf("%s: %d of %d runs are new", name, fresh, len(second.runs))
		}
		if !bytes.Equal(unpacked(t, second), plain) {
			t.Errorf("%s: another body", name)
		}
		if first.Sum() == second.Sum() || second.Sum() != New(plain, cuts, nil).Sum() {
			t.Error("the sum does not follow the bytes")
		}
	}
}

// Packing a body packs the runs that it took over, and nothing of its own reaches the body that it took them from: who keeps that one
// keeps only what was in it (R51).
func TestNothingFlowsBack(t *testing.T) {
	all := lines(1500)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 64)
	kept := New(plain, cuts, nil)
	runs, cost := slices.Clone(kept.runs), kept.Cost()
	secret := []byte(strings.Repeat("secret ", 3000))
	merged := New(slices.Concat(secret, plain[1:]), append([]int{len(secret)}, moved(cuts[1:], len(secret)-1)...), kept)
	var grown int64
	for name, f := range forms {
		if !bytes.Equal(f.read(t, f.pack(merged)), merged.Plain()) {
			t.Errorf("%s: another body", name)
		}
		for i, r := range kept.runs {
			if f.of(r.run).size.Load() > 0 != (i > 0) {
				t.Errorf("%s: run %d of %d is packed or not", name, i, len(kept.runs))
			}
			grown += f.of(r.run).size.Load()
		}
	}
	if !slices.Equal(kept.runs, runs) || kept.Cost() != cost+grown || grown == 0 {
		t.Errorf("cost %d after %d, %d for packed runs", kept.Cost(), cost, grown)
	}
	for name, f := range forms {
		if got := f.read(t, f.pack(kept)); !bytes.Equal(got, plain) {
			t.Errorf("%s: another body", name)
		}
	}
}

func moved(cuts []int, by int) []int {
	out := slices.Clone(cuts)
	for i := range out {
		out[i] += by
	}
	return out
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
	for name, f := range forms {
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
					if !bytes.Equal(f.read(t, f.pack(b)), next) {
						t.Errorf("%s: another body", name)
					}
				})
			}
			group.Go(func() { f.pack(first) })
		}
		group.Wait()
		if grown, packed := first.Cost()-before, int64(len(f.pack(first))); before < int64(len(plain)) || grown < 2*packed-100 || grown > 2*packed {
			t.Errorf("%s: cost %d for %d bytes, %d more for %d packed", name, before, len(plain), grown, packed)
		}
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
