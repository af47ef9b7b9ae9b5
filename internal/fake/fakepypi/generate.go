package fakepypi

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// perRelease is how many files a generated release has: wheels for several platforms, and the
// sources.
const perRelease = 20

// Generate makes a large project's page in both forms, with the shape of a real one and without a
// copy of one: about 600 bytes a file in JSON, 20 files a release, a release a day since 2015. The
// same seed gives the same bytes. The files do not exist.
func Generate(project string, files int, seed uint64, filesURL string) (asJSON, asHTML []byte) {
	g := generator{random: rand.New(rand.NewPCG(seed, 1)), project: project, module: strings.ReplaceAll(project, "-", "_"), filesURL: filesURL}
	g.json.WriteString(`{"alternate-locations":[],"files":[`)
	g.html.WriteString("<!DOCTYPE html>\n<html>\n  <head>\n    <meta name=\"pypi:repository-version\" content=\"1.4\">\n" +
		"    <title>Links for " + project + "</title>\n  </head>\n  <body>\n    <h1>Links for " + project + "</h1>\n")
	var versions []string
	for i := range files {
		if i%perRelease == 0 {
			versions = append(versions, `"`+g.version(i)+`"`)
		}
		if i > 0 {
			g.json.WriteString(",")
		}
		g.file(i)
	}
	fmt.Fprintf(&g.json, `],"meta":{"_last-serial":%d,"api-version":"1.4"},"name":"%s","versions":[%s]}`, files, project, strings.Join(versions, ","))
	fmt.Fprintf(&g.html, "</body>\n</html>\n<!--SERIAL %d-->", files)
	return []byte(g.json.String()), []byte(g.html.String())
}

type generator struct {
	random                    *rand.Rand
	project, module, filesURL string
	json, html                strings.Builder
}

// version is that of the i-th file: every tenth release is a prerelease.
func (g *generator) version(i int) string {
	release := i / perRelease
	version := fmt.Sprintf("%d.%d.%d", release/100, release/10%10, release%10)
	if release%10 == 9 {
		version += "rc1"
	}
	return version
}

// name is that of the i-th file.
func (g *generator) name(i int) string {
	start, python := g.module+"-"+g.version(i), 6+i%7
	switch n := i % perRelease; {
	case n < 7:
		return fmt.Sprintf("%s-cp3%d-cp3%d-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", start, python, python)
	case n < 14:
		return fmt.Sprintf("%s-cp3%d-cp3%d-win_amd64.whl", start, python, python)
	case n < perRelease-1:
		return fmt.Sprintf("%s-cp3%d-abi3-macosx_11_0_arm64.whl", start, n-8)
	}
	return start + ".tar.gz"
}

func (g *generator) digest() string {
	var b [32]byte
	for i := range b {
		b[i] = byte(g.random.Uint32())
	}
	return hex.EncodeToString(b[:])
}

func (g *generator) file(i int) {
	name, sum, companion := g.name(i), g.digest(), g.digest()
	uploaded := Old().Add(time.Duration(i/perRelease)*24*time.Hour + time.Duration(i%perRelease)*time.Minute).Format("2006-01-02T15:04:05.000000Z")
	address := fmt.Sprintf("%s/packages/%s/%s/%s/%s", g.filesURL, sum[:2], sum[2:4], sum[4:], name)
	meta, attributes := "false", ""
	if strings.HasSuffix(name, ".whl") {
		meta = `{"sha256":"` + companion + `"}`
		attributes = ` data-dist-info-metadata="sha256=` + companion + `" data-core-metadata="sha256=` + companion + `"`
	}
	fmt.Fprintf(&g.json, `{"core-metadata":%s,"data-dist-info-metadata":%s,"filename":"%s","hashes":{"sha256":"%s"},"provenance":null,"requires-python":">=3.6",`+
		`"size":%d,"upload-time":"%s","url":"%s","yanked":false}`, meta, meta, name, sum, 1_000_000+g.random.IntN(9_000_000), uploaded, address)
	fmt.Fprintf(&g.html, "<a href=\"%s#sha256=%s\" data-requires-python=\"&gt;=3.6\"%s>%s</a><br />\n", address, sum, attributes, name)
}
