// Package pypi holds what changes when the Python package index protocol changes: paths, content
// negotiation, the list of projects, and the error dialect. It opens no socket and decides nothing.
// Pages of projects are in its package page, uploads in upload; naming and webpage hold what things
// are called and how HTML is read.
package pypi

import (
	"net/url"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/pypi/naming"
)

// Ecosystem is the ecosystem's name in [registry.Package].
const Ecosystem = "pypi"

// Normalize spells a project name as the index compares names (PEP 503). It does not validate.
func Normalize(name string) string { return naming.Normalize(name) }

// KeyOfFile is the key under which a document has a file of a project: the name itself, and for a
// companion the name of the file that it describes. It reports false for a name that no file of the
// project can have.
func KeyOfFile(name, file string) (key string, ok bool) { return naming.KeyOfFile(name, file) }

// VersionOfFile reads the release that a file of a project belongs to out of the file's name,
// normalised by PEP 440, and what kind of file it is ("wheel", "sdist", "egg", "installer").
func VersionOfFile(name, file string) (version, kind string, ok bool) {
	return naming.VersionOfFile(name, file)
}

// ListingPath is the outbound path of a project's page below the index's base, which ends in
// "/simple".
func ListingPath(name string) string { return "/" + url.PathEscape(naming.Normalize(name)) + "/" }

// FilePath is the path of a file below the mount, as the pages link it. Every byte of a valid file
// name may stand in a path as it is.
func FilePath(name, file string) string { return "/files/" + naming.Normalize(name) + "/" + file }

// ErrorBody is a refusal in the index's dialect: one line of text (R37).
func ErrorBody(message string) []byte {
	return []byte(strings.Join(strings.Fields(message), " ") + "\n")
}
