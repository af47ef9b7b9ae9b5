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

	"github.com/klauspost/compress/flate"
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
	of   func(*Body) []*compressed
}{
	"gzip": {(*Body).Gzip, gunzip, func(b *Body) (all []*compressed) {
		for _, r := range b.segments {
			all = append(all, r.deflate)
		}
		return all
	}},
	"zstd": {(*Body).Zstd, unzstd, func(b *Body) (all []*compressed) {
		for _, f := range b.frames {
			all = append(all, f.compressed)
		}
		return all
	}},
}

// packedOf tells which of the parts of a body are packed.
func packedOf(of func(*Body) []*compressed, b *Body) (packed []bool) {
	for _, f := range of(b) {
		packed = append(packed, f.size.Load() > 0)
	}
	return packed
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

// items is a body of lines, of which some are kept, cut after every few lines whether they are kept
// or not.
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

// Whatever is kept, and whatever was kept before, the packed form unpacks to the plain one; and no
// segment is compressed that the body before had.
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
			for i, r := range b.segments {
				start, taken, there := 0, false, false
				if i > 0 {
					start = b.segments[i-1].end
				}
				for _, old := range newPrior(prior).segments {
					if bytes.Equal(old.plain, plain[start:r.end]) && old.sum != r.sum {
						t.Fatal("the sum of other bytes")
					}
					taken = taken || old.segment == r.segment
					there = there || bytes.Equal(old.plain, plain[start:r.end])
				}
				if taken != there {
					t.Fatalf("segment %d: known %t, taken over %t", i, there, taken)
				}
			}
			prior = b
		}
	})
}

// One line that comes or goes changes one segment, and the next one where that may refer to it; all
// others are shared, packed form and all.
func TestOnlyWhatChanged(t *testing.T) {
	all := lines(6000)
	for name, f := range forms {
		// early in its segment, late, and in the last
		for line, fresh := range map[int]int{700: 1, 510: 2, 5990: 1} {
			if name == "zstd" {
				fresh = 1
			}
			keep := slices.Repeat([]bool{true}, len(all))
			plain, cuts := items(all, keep, 128)
			first := New(plain, cuts, nil)
			f.pack(first)
			keep[line] = false
			plain, cuts = items(all, keep, 128)
			second := New(plain, cuts, first)
			packed := packedOf(f.of, second)
			got := 0
			for _, is := range packed {
				if !is {
					got++
				}
			}
			if got != fresh || len(second.segments) != len(first.segments) || len(packed) < 5 {
				t.Errorf("%s, line %d: %d of %d are new, want %d", name, line, got, len(packed), fresh)
			}
			if !bytes.Equal(unpacked(t, second), plain) {
				t.Errorf("%s: another body", name)
			}
			if first.Sum() == second.Sum() || second.Sum() != New(plain, cuts, nil).Sum() {
				t.Error("the sum does not follow the bytes")
			}
		}
	}
}

// What stands before all items, which changes in most bodies, changes nothing but itself.
func TestWhatStandsBeforeAll(t *testing.T) {
	all := lines(3000)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 64)
	first := New(plain, cuts, nil)
	other := bytes.Clone(plain)
	other[0] = '['
	second := New(other, cuts, first)
	for name, f := range forms {
		f.pack(first)
		if packed := packedOf(f.of, second); packed[0] || slices.Contains(packed[1:], false) {
			t.Errorf("%s: %v", name, packed)
		}
	}
}

// What a segment is packed to depends on its bytes and its dictionary alone, not on what the same
// writer packed before: a strong tag names the packed bytes.
func TestPackedBytesAreAlwaysTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := []byte(strings.Join(lines(2000), ""))
	piece := func(most int) []byte {
		n := r.IntN(most)
		from := r.IntN(len(text) - n)
		return text[from : from+n]
	}
	for i := range 300 {
		dictionary, plain := piece(reach), piece(100_000)
		var want bytes.Buffer
		w, err := flate.NewWriterDict(&want, level, dictionary)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(plain)
		_ = w.Flush()
		if got := compress(&deflaters, dictionary, plain); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("piece %d, %d bytes behind %d: %d bytes, and %d from a new writer", i, len(plain), len(dictionary), len(got), want.Len())
		}
	}
}

// A body that ends earlier, or goes on, has its own last frame.
func TestBodiesThatEndElsewhere(t *testing.T) {
	all := lines(2000)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 50)
	var prior *Body
	for _, n := range []int{2, 12, 5, 20, 19, 18, 17, 16, 30, 9, 10} {
		b := New(plain[:cuts[n]], cuts[:n], prior)
		if !bytes.Equal(unpacked(t, b), plain[:cuts[n]]) {
			t.Fatalf("%d segments: another body", n)
		}
		prior = b
	}
}

// A segment refers to what stands before it, across its beginning: what repeats further apart than
// one segment is long still packs.
func TestRunsReferBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	item := make([]byte, 12_000) // nothing in it repeats
	for i := range item {
		item[i] = byte(r.Uint32())
	}
	var plain []byte
	var cuts []int
	for range 40 {
		cuts = append(cuts, len(plain))
		plain = append(plain, item...)
	}
	b := New(plain, cuts, nil)
	if len(b.segments) != 40 || !bytes.Equal(unpacked(t, b), plain) {
		t.Fatalf("%d segments, or another body", len(b.segments))
	}
	if n := len(b.Gzip()); n > 3*len(item) {
		t.Errorf("gzip of 40 times %d bytes takes %d", len(item), n)
	}
	if n := len(b.Zstd()); n > 8*len(item) {
		t.Errorf("zstd of 40 times %d bytes takes %d", len(item), n)
	}
}

// Packing a body packs the segments that it took over, and nothing of its own reaches the body that
// it took them from: who keeps that one keeps only what was in it (R51). A segment behind something
// else than there may refer to that, and is packed for this body alone.
func TestNothingFlowsBack(t *testing.T) {
	all := lines(3000)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 64)
	secret := []byte(strings.Repeat("secret ", 3000))
	behind := cuts[20]
	for where, merged := range map[string]func(kept *Body) *Body{
		"instead of the first segment": func(kept *Body) *Body {
			return New(slices.Concat(secret, plain[1:]), append([]int{len(secret)}, moved(cuts[1:], len(secret)-1)...), kept)
		},
		"between": func(kept *Body) *Body {
			body := slices.Concat(plain[:behind], secret, plain[behind:])
			return New(body, slices.Concat(cuts[:21], []int{behind + len(secret)}, moved(cuts[21:], len(secret))), kept)
		},
	} {
		kept := New(plain, cuts, nil)
		segments, cost := slices.Clone(kept.segments), kept.Cost()
		var grown int64
		for name, f := range forms {
			other := merged(kept)
			if !bytes.Equal(f.read(t, f.pack(other)), other.Plain()) {
				t.Errorf("%s: another body", name)
			}
			shared := 0
			for i, of := range f.of(kept) {
				size := of.size.Load()
				grown += size
				if size > 0 {
					shared++
				}
				if size > 0 && bytes.Contains(of.bytes, []byte("secret")) {
					t.Errorf("%s, %s: part %d holds the secret", name, where, i)
				}
			}
			packed := packedOf(f.of, kept)
			if packed[0] != (where == "between") || shared < len(packed)-3 {
				t.Errorf("%s, %s: %v", name, where, packed)
			}
			if name == "gzip" && where == "between" && packed[21] {
				t.Errorf("what stands behind the secret was packed for the body without it")
			}
		}
		if !slices.Equal(kept.segments, segments) || kept.Cost() != cost+grown || grown == 0 {
			t.Errorf("cost %d after %d, %d for packed parts", kept.Cost(), cost, grown)
		}
		for name, f := range forms {
			if got := f.read(t, f.pack(kept)); !bytes.Equal(got, plain) || !bytes.Equal(f.pack(kept), f.pack(New(plain, cuts, nil))) {
				t.Errorf("%s, %s: another body than without the other one", name, where)
			}
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

// Two segments of one length and one CRC-32 are not the same segment: what decides is the bytes.
func TestSameChecksumOtherBytes(t *testing.T) {
	// XOR with the polynomial leaves the checksum as it is: 33 bits, in the order in which CRC-32
	// reads them.
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

// Bodies that share segments may be packed at once; what each costs counts what it holds.
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

// Small and empty bodies are one segment.
func TestSmallBodies(t *testing.T) {
	for _, n := range []int{0, 1, Small, Small + 1} {
		b := New(make([]byte, n), []int{0, n / 2, n}, nil)
		if !bytes.Equal(unpacked(t, b), make([]byte, n)) {
			t.Errorf("%d bytes: another body", n)
		}
		if want := 1 + n/(Small+1); len(b.segments) != want {
			t.Errorf("%d bytes: %d segments, want %d", n, len(b.segments), want)
		}
	}
}
