// Package packument makes npm listing documents for tests and benchmarks: any number of versions,
// the same bytes for the same seed, and the shapes and sizes of real ones without a copy of real
// ones.
package packument

import (
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Option changes what Generate makes.
type Option func(*generator)

// Weight sets how many bytes a version takes, about, and how many percent of them the abbreviated
// form keeps. The default is a small library's: 1300 bytes, 50 percent. Less than about 900 bytes
// are not possible.
func Weight(bytes, keptPercent int) Option {
	return func(g *generator) { g.weight, g.kept = bytes, keptPercent }
}

// Origin sets the address under which the tarballs are; the default is "https://registry.example".
func Origin(url string) Option { return func(g *generator) { g.origin = url } }

// Published sets when the first version was published and how long after it each next one was. The
// default is 2015, one a day.
func Published(first time.Time, every time.Duration) Option {
	return func(g *generator) { g.first, g.every = first, every }
}

// Texts makes most of the weight long texts that the abbreviated form does not keep, as packages
// have that repeat their licence in every version, instead of many small members.
func Texts() Option { return func(g *generator) { g.texts = true } }

// Bare makes versions of the least that a gate needs, some 300 bytes each, for documents of very
// many of them. It overrides Weight.
func Bare() Option { return func(g *generator) { g.bare = true } }

// Alike makes each version repeat most of the one before, as real ones do, instead of being another
// one altogether.
func Alike() Option {
	return func(g *generator) { g.before = map[string][]string{} }
}

// WithoutTime leaves "time" out, as in the abbreviated form.
func WithoutTime() Option { return func(g *generator) { g.timeless = true } }

// Shape is the size of a real listing.
type Shape struct {
	Name string
	// Versions and Bytes are those of the full document.
	Versions, Bytes int
	// Kept is the percentage of it that the abbreviated form keeps.
	Kept int
	// Packed is the full document's size in gzip. The registry that it came from leaves out what is
	// signed.
	Packed int
}

// Shapes are sizes seen at real packages, smallest first.
func Shapes() []Shape {
	return []Shape{
		{"left-pad", 15, 11_125, 40, 2_500},
		{"is-number", 15, 19_537, 40, 3_400},
		{"lodash", 117, 131_625, 27, 17_000},
		{"express", 290, 564_807, 47, 50_000},
		{"react", 2_963, 4_071_630, 30, 447_000},
		{"@types/node", 2_349, 9_429_036, 8, 488_000},
		{"typescript", 3_478, 10_517_441, 55, 535_000},
		{"next", 2_627, 20_994_862, 74, 720_000},
	}
}

// Generate makes the document of a shape.
func (s Shape) Generate(seed uint64, options ...Option) []byte {
	return Generate(s.Name, s.Versions, seed, append([]Option{Weight(s.Bytes/s.Versions, s.Kept)}, options...)...)
}

// VersionAt is the i-th version that Generate makes: every tenth is a prerelease of the one after
// it.
func VersionAt(i int) string {
	release := i - i/10
	version := fmt.Sprintf("%d.%d.%d", release/400, release/20%20, release%20)
	if i%10 == 9 {
		return version + "-beta.1"
	}
	return version
}

// Generate makes a full listing document of a package. The last version that is no prerelease is
// tagged latest.
func Generate(name string, versions int, seed uint64, options ...Option) []byte {
	g := generator{
		Rand: rand.New(rand.NewPCG(seed, 2)), name: name, weight: 1300, kept: 50, origin: "https://registry.example",
		first: time.Date(2015, 1, 1, 12, 0, 0, 0, time.UTC), every: 24 * time.Hour,
	}
	for _, o := range options {
		o(&g)
	}
	g.out = make([]byte, 0, versions*(g.weight+300)+4096)
	g.document(versions)
	return g.out
}

type generator struct {
	*rand.Rand
	out          []byte
	name, origin string
	weight, kept int
	first        time.Time
	every        time.Duration
	timeless     bool
	texts, bare  bool
	// the members of the version before, by what they are in; nil: they are made anew
	before map[string][]string
}

func (g *generator) printf(format string, args ...any) { g.out = fmt.Appendf(g.out, format, args...) }

func (g *generator) document(versions int) {
	g.printf(`{"_id":%q,"_rev":"%d-%016x","name":%q,"dist-tags":{`, g.name, versions, g.Uint64(), g.name)
	for i := versions - 1; i >= 0; i-- {
		if i%10 != 9 {
			g.printf(`"latest":%q`, VersionAt(i))
			break
		}
	}
	if versions > 10 {
		g.printf(`,"beta":%q`, VersionAt(versions/10*10-1))
	}
	g.printf(`},"versions":{`)
	for i := range versions {
		if i > 0 {
			g.printf(",")
		}
		g.version(VersionAt(i))
	}
	g.printf(`}`)
	if !g.timeless {
		last := g.first.Add(time.Duration(max(versions-1, 0)) * g.every)
		g.printf(`,"time":{"created":%q,"modified":%q`, stamp(g.first), stamp(last))
		for i := range versions {
			g.printf(`,%q:%q`, VersionAt(i), stamp(g.first.Add(time.Duration(i)*g.every)))
		}
		g.printf(`}`)
	}
	g.printf(`,"maintainers":[{"name":"jo","email":"jo@mail.example"}],"license":"MIT","readme":"# %s\n\nSays \"hello\" — caf\u00e9 \ud83d\ude00.\n"}`, g.name)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (g *generator) version(version string) {
	start := len(g.out)
	short := g.name[strings.LastIndexByte(g.name, '/')+1:]
	if g.bare {
		_, integrity := g.digests()
		g.printf(`%q:{"name":%q,"version":%q,"dist":{"integrity":"sha512-%s","tarball":"%s/%s/-/%s-%s.tgz"}}`,
			version, g.name, version, integrity, g.origin, g.name, short, version)
		return
	}
	g.printf(`%q:{"name":%q,"version":%q,"description":"A library that does a thing","main":"index.js","scripts":{"test":"node test.js"%s}`,
		version, g.name, version, g.sometimes("scripts", func() string { return []string{"", `,"postinstall":"node build.js"`}[g.IntN(8)/7] }))
	g.printf(`,"repository":{"type":"git","url":"git+https://code.example/%s.git"},"engines":{"node":">=%s"}`, g.name,
		g.sometimes("engines", func() string { return strconv.Itoa(10 + g.IntN(12)) }))
	kept := g.weight * g.kept / 100
	g.pairs("dependencies", kept-700)
	sha1sum, sha512sum := g.digests()
	g.printf(`,"dist":{"shasum":%q,"integrity":"sha512-%s","tarball":"%s/%s/-/%s-%s.tgz","fileCount":%d,"unpackedSize":%d`,
		sha1sum, sha512sum, g.origin, g.name, short, version, g.IntN(500), g.IntN(1_000_000))
	g.printf(`,"signatures":[{"keyid":"SHA256:%016x","sig":"%s"}]}`, g.Uint64(), base64.StdEncoding.EncodeToString(g.bytes(70)))
	g.printf(`,"_npmUser":{"name":"jo","email":"jo@mail.example"},"gitHead":"%s"`, hex.EncodeToString(g.bytes(20)))
	g.fill(g.weight - (len(g.out) - start) - 2)
	g.printf(`}`)
}

// fill adds about so many bytes that the abbreviated form drops.
func (g *generator) fill(size int) {
	if !g.texts || size < 200 {
		g.pairs("contributes", size)
		return
	}
	g.printf(`,"licenseText":"`)
	const line = `Permission is given to use this for anything, \"as is\", without warranty of any kind.\n`
	for end := len(g.out) + size - 20; len(g.out)+len(line) < end; {
		g.out = append(g.out, line...)
	}
	g.printf(`"`)
}

// rare is one in how many members changes from a version to the next when they are alike.
const rare = 40

// sometimes is what is in the version before, or something new.
func (g *generator) sometimes(in string, anew func() string) string {
	if was := g.before[in]; len(was) == 1 && g.IntN(rare) > 0 {
		return was[0]
	}
	text := anew()
	if g.before != nil {
		g.before[in] = []string{text}
	}
	return text
}

// pairs adds an object of about so many bytes.
func (g *generator) pairs(key string, size int) {
	if size < 40 {
		return
	}
	g.printf(`,%q:`, key)
	was, open := g.before[key], byte('{')
	for i, end := 0, len(g.out)+size; len(g.out) < end; i++ {
		g.out = append(g.out, open)
		open = ','
		start := len(g.out)
		if i < len(was) && g.IntN(rare) > 0 {
			g.out = append(g.out, was[i]...)
			continue
		}
		g.pair(i)
		switch text := string(g.out[start:]); {
		case i < len(was):
			was[i] = text
		case g.before != nil:
			was = append(was, text)
		}
	}
	if g.before != nil {
		g.before[key] = was
	}
	g.printf(`}`)
}

// pair adds a member that is like a dependency.
func (g *generator) pair(i int) {
	n := g.Uint32()
	g.out = append(g.out, `"package-`...)
	g.out = strconv.AppendInt(g.out, int64(i), 10)
	g.out = append(g.out, '-')
	g.out = strconv.AppendInt(g.out, int64(n&0xffff), 16)
	g.out = append(g.out, `":"^`...)
	g.out = strconv.AppendInt(g.out, int64(n>>16%20), 10)
	g.out = append(g.out, '.')
	g.out = strconv.AppendInt(g.out, int64(n>>20%30), 10)
	g.out = append(g.out, ".0\""...)
}

// digests are a SHA-1 in hex and a SHA-512 in base64, of nothing.
func (g *generator) digests() (string, string) {
	return hex.EncodeToString(g.bytes(sha1.Size)), base64.StdEncoding.EncodeToString(g.bytes(sha512.Size))
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}
