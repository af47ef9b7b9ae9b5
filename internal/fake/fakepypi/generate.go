package fakepypi

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// perRelease is how many files a generated release has: wheels for several platforms, and the sources.
const perRelease = 20

// Generate makes a large project's page in both forms, with the shape of a real one and without a copy of one: about 750 bytes a file in
// JSON, 20 files a release, a release a day since 2015. The same seed gives the same bytes. The files do not exist.
func Generate(project string, files int, seed uint64, filesURL string) (asJSON, asHTML []byte) {
	random := rand.New(rand.NewPCG(seed, 1))
	digest := func() string {
		var b [32]byte
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return hex.EncodeToString(b[:])
	}
	var j, h, versions strings.Builder
	j.WriteString(`{"alternate-locations":[],"files":[`)
	h.WriteString("<!DOCTYPE html>\n<html>\n  <head>\n    <meta name=\"pypi:repository-version\" content=\"1.4\">\n" +
		"    <title>Links for " + project + "</title>\n  </head>\n  <body>\n    <h1>Links for " + project + "</h1>\n")
	for i := range files {
		release := i / perRelease
		version := fmt.Sprintf("%d.%d.%d", release/100, release/10%10, release%10)
		if release%10 == 9 {
			version += "rc1"
		}
		if i%perRelease == 0 {
			fmt.Fprintf(&versions, `,"%s"`, version)
		}
		uploaded := Old().Add(time.Duration(release)*24*time.Hour + time.Duration(i%perRelease)*time.Minute).Format("2006-01-02T15:04:05.000000Z")
		module := strings.ReplaceAll(project, "-", "_")
		name := fmt.Sprintf("%s-%s-cp3%d-cp3%d-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", module, version, 6+i%7, 6+i%7)
		wheel, sum, companion := true, digest(), digest()
		switch i % perRelease {
		case 7, 8, 9, 10, 11, 12, 13:
			name = fmt.Sprintf("%s-%s-cp3%d-cp3%d-win_amd64.whl", module, version, 6+i%7, 6+i%7)
		case 14, 15, 16, 17, 18:
			name = fmt.Sprintf("%s-%s-cp3%d-abi3-macosx_11_0_arm64.whl", module, version, i%perRelease-8)
		case perRelease - 1:
			name, wheel = module+"-"+version+".tar.gz", false
		}
		address := fmt.Sprintf("%s/packages/%s/%s/%s/%s", filesURL, sum[:2], sum[2:4], sum[4:], name)
		meta, attribute := "false", ""
		if wheel {
			meta, attribute = `{"sha256":"`+companion+`"}`, ` data-dist-info-metadata="sha256=`+companion+`" data-core-metadata="sha256=`+companion+`"`
		}
		if i > 0 {
			j.WriteString(",")
		}
		fmt.Fprintf(&j, `{"core-metadata":%s,"data-dist-info-metadata":%s,"filename":"%s","hashes":{"sha256":"%s"},"provenance":null,"requires-python":">=3.6",`+
			`"size":%d,"upload-time":"%s","url":"%s","yanked":false}`, meta, meta, name, sum, 1_000_000+random.IntN(9_000_000), uploaded, address)
		fmt.Fprintf(&h, "<a href=\"%s#sha256=%s\" data-requires-python=\"&gt;=3.6\"%s>%s</a><br />\n", address, sum, attribute, name)
	}
	fmt.Fprintf(&j, `],"meta":{"_last-serial":%d,"api-version":"1.4"},"name":"%s","versions":[%s]}`, files, project, strings.TrimPrefix(versions.String(), ","))
	fmt.Fprintf(&h, "</body>\n</html>\n<!--SERIAL %d-->", files)
	return []byte(j.String()), []byte(h.String())
}
