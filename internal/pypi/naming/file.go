package naming

import "strings"

// The kinds of files that a project page may list.
const (
	KindWheel     = "wheel"     // PEP 427
	KindSdist     = "sdist"     // PEP 625, and older archives of sources
	KindEgg       = "egg"       // the built form before wheels
	KindInstaller = "installer" // executables of old times
)

// CompanionSuffix is what a companion's name adds to its file's (PEP 658).
const CompanionSuffix = ".metadata"

// maxFile bounds a file name: what common file systems take.
const maxFile = 255

// extensions are the endings of files, with their kinds. Longer endings come before those that they
// end in.
var extensions = [...]struct{ ending, kind string }{
	{".whl", KindWheel},
	{".tar.gz", KindSdist},
	{".zip", KindSdist},
	{".tgz", KindSdist},
	{".tar.bz2", KindSdist},
	{".tbz", KindSdist},
	{".tar.xz", KindSdist},
	{".txz", KindSdist},
	{".tar.lzma", KindSdist},
	{".tar.lz", KindSdist},
	{".tlz", KindSdist},
	{".tar.Z", KindSdist},
	{".tar", KindSdist},
	{".egg", KindEgg},
	{".exe", KindInstaller},
	{".msi", KindInstaller},
}

// KindOf returns the kind of a file by its ending; it is empty when the ending is of no kind that
// an index lists.
func KindOf(file string) string {
	_, kind := split(file)
	return kind
}

// split takes a file's ending off; an unknown one gives the empty kind.
func split(file string) (stem, kind string) {
	for _, e := range extensions {
		if stem, ok := strings.CutSuffix(file, e.ending); ok {
			return stem, e.kind
		}
	}
	return "", ""
}

// KeyOfFile is the key under which a document has a file: the name itself, and for a companion the
// name of the file that it describes. It reports false for a name that no file of the project can
// have.
func KeyOfFile(name, file string) (key string, ok bool) {
	if key, ok = strings.CutSuffix(file, CompanionSuffix); !ok {
		key = file
	}
	_, _, ok = VersionOfFile(name, key)
	return key, ok
}

// VersionOfFile reads the release that a file of a project belongs to out of the file's name, and
// what kind of file it is. The version is normalised by PEP 440, so that a rule that names one
// spelling cannot be passed by in another; one that PEP 440 does not know stays as it is, in lower
// case. It reports false when the name cannot be served or is not that of a file of the project.
func VersionOfFile(name, file string) (version, kind string, ok bool) {
	raw, kind := rawVersion(Normalize(name), file)
	if raw == "" {
		return "", "", false
	}
	version, ok = releaseOf(raw)
	return version, kind, ok
}

// releaseOf normalises the version in a file name. What PEP 440 does not know must begin with a
// digit at least: it may be a piece of the name of another project.
func releaseOf(raw string) (version string, ok bool) {
	if version, ok = NormalizeVersion(raw); ok {
		return version, true
	}
	return strings.ToLower(raw), digit(raw[0])
}

// rawVersion cuts the version out of a file name as it is spelled, for a normalised project name;
// it is empty when there is none.
func rawVersion(name, file string) (raw, kind string) {
	if !plain(file) {
		return "", ""
	}
	stem, kind := split(file)
	switch kind {
	case KindWheel:
		raw = wheelVersion(name, stem)
	case KindSdist:
		raw = afterName(name, stem)
	case KindEgg:
		raw, _, _ = strings.Cut(afterName(name, stem), "-py")
	case KindInstaller:
		raw, _, _ = strings.Cut(afterName(name, stem), ".win")
	}
	return raw, kind
}

// wheelVersion reads name-version[-build]-python-abi-platform. Escaped names and versions have "_"
// where "-" was.
func wheelVersion(name, stem string) string {
	dashes := strings.Count(stem, "-")
	if dashes != 4 && dashes != 5 {
		return ""
	}
	distribution, rest, _ := strings.Cut(stem, "-")
	version, rest, _ := strings.Cut(rest, "-")
	if dashes == 5 && (rest == "" || !digit(rest[0])) || !named(name, distribution) {
		return ""
	}
	for tag := range strings.SplitSeq(rest, "-") {
		if tag == "" {
			return ""
		}
	}
	return strings.ReplaceAll(version, "_", "-")
}

// afterName is what follows the project's name and a dash. The shortest beginning that is the name
// counts, as installers take it.
func afterName(name, stem string) string {
	for i := range len(stem) {
		if stem[i] == '-' && i > 0 && named(name, stem[:i]) {
			return stem[i+1:]
		}
	}
	return ""
}

// named reports whether a beginning of a file name is the project's name in some spelling.
func named(name, spelled string) bool {
	if len(spelled) < len(name) || lower(spelled[0]) != name[0] {
		return false
	}
	return spelled == name || Normalize(spelled) == name
}

// plain reports whether a file name is one path segment of characters that need no escaping
// anywhere: not in a URL, not in JSON, not in HTML.
func plain(file string) bool {
	if file == "" || len(file) > maxFile || !alnum(file[0]) {
		return false
	}
	for i := range len(file) {
		if !fileBytes[file[i]] {
			return false
		}
	}
	return true
}

var fileBytes = bytesOf("-_.+!~")
