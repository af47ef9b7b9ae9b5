package integrity

import (
	"bytes"
	"crypto/sha512"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/ecluse-gate/ecluse/internal/registry"
)

func digestOf(b []byte) []registry.Digest {
	sum := sha512.Sum512(b)
	return []registry.Digest{{Algorithm: "sha512", Sum: sum[:]}}
}

// C25: whatever the sizes of the reads, a right body passes whole and a wrong one never does.
func TestVerify(t *testing.T) {
	for _, size := range []int{0, 1, piece - 1, piece, piece + 1, 2 * piece, 3*piece + 7} {
		content := bytes.Repeat([]byte("a"), size)
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"plain": func(r io.Reader) io.Reader { return r }, "one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with EOF": iotest.DataErrReader,
		} {
			got, err := io.ReadAll(Verify(io.NopCloser(wrap(bytes.NewReader(content))), digestOf(content)))
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d %s: %d bytes, %v", size, name, len(got), err)
			}
			for _, wrong := range [][]byte{append(bytes.Clone(content), 'x'), bytes.Repeat([]byte("b"), size+1)} {
				got, err := io.ReadAll(Verify(io.NopCloser(wrap(bytes.NewReader(wrong))), digestOf(content)))
				if !errors.Is(err, ErrMismatch) || len(got) >= len(wrong) {
					t.Errorf("%d %s: a wrong body passed: %d of %d bytes, %v", size, name, len(got), len(wrong), err)
				}
			}
		}
	}
}

// C29: a cut body ends with its own error, also when that is an unexpected EOF, and never as a
// whole.
func TestVerifyCut(t *testing.T) {
	content := bytes.Repeat([]byte("a"), 3*piece)
	body := io.MultiReader(bytes.NewReader(content[:piece+100]), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, err := io.ReadAll(Verify(io.NopCloser(body), digestOf(content))); !errors.Is(err, io.ErrUnexpectedEOF) || len(got) > piece {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestFloors(t *testing.T) {
	weak := registry.Version{Artifacts: []registry.Artifact{{Digests: []registry.Digest{{Algorithm: "sha1"}, {Algorithm: "md5"}}}}}
	none := registry.Version{Artifacts: []registry.Artifact{{}}}
	strong := registry.Version{Artifacts: []registry.Artifact{{Digests: digestOf(nil)}}}
	for _, c := range []struct {
		floor string
		v     registry.Version
		want  bool
	}{{"none", none, true}, {"sha1", none, false}, {"sha1", weak, true}, {"sha256", weak, false}, {"sha256", strong, true}, {"sha512", strong, true}} {
		f, err := ParseFloor(c.floor)
		if err != nil || f.Meets(c.v) != c.want || f.String() != c.floor {
			t.Errorf("%+v: %v, %v", c, f, err)
		}
	}
	for _, bad := range []string{"", "md5", "SHA256", "sha3"} {
		if _, err := ParseFloor(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
	if _, ok := Strongest([]registry.Digest{{Algorithm: "sha512", Sum: []byte("short")}}, SHA1); ok {
		t.Error("a digest of the wrong length counts")
	}
}
