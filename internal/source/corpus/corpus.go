// Package corpus is the local folder that is uploaded: which paths may be named, how a file is
// opened so that no link can lead elsewhere, and what is known of a file (size, modification time,
// SHA-256) so that any later change is noticed (S68-S70). It only reads.
package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ecluse-gate/ecluse/internal/visible"
)

// Codes of an Error (S68-S70).
const (
	CodeRoot       = "local-root-invalid"
	CodePath       = "local-path-invalid"
	CodeCredential = "credential-file-forbidden"
	CodeSize       = "file-size-invalid"
	CodeDrift      = "inventory-drift"
	CodeUnreadable = "inventory-unreadable"
)

// Error is a refusal: a code, the relative path that it is about ("" for the root) and the reason.
// It never holds the root.
type Error struct{ Code, Path, Reason string }

func (e *Error) Error() string {
	if e.Path == "" {
		return "local_root " + e.Reason
	}
	return visible.Quote(e.Path) + " " + e.Reason
}

func refuse(code, name, format string, args ...any) error {
	return &Error{Code: code, Path: name, Reason: fmt.Sprintf(format, args...)}
}

// File is what identifies one file of the corpus.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	Size int64
	// ModTime is in nanoseconds since 1970.
	ModTime int64
	// SHA256 is 64 lower-case hexadecimal digits.
	SHA256 string
}

// maxPath bounds one relative path, in bytes.
const maxPath = 1024

// CheckPath refuses a path that is not a clean relative POSIX path (S68) or that looks like a
// credential (S69).
func CheckPath(name string) error {
	switch {
	case name == "":
		return refuse(CodePath, name, "is empty")
	case len(name) > maxPath:
		return refuse(CodePath, name[:40]+"…", "is longer than %d bytes", maxPath)
	case !utf8.ValidString(name):
		return refuse(CodePath, name, "is not valid UTF-8")
	case strings.HasPrefix(name, "/"):
		return refuse(CodePath, name, "is absolute; paths are relative to local_root")
	case strings.ContainsAny(name, `\:`):
		return refuse(CodePath, name, "contains a backslash or a colon")
	case strings.ContainsFunc(name, unicode.IsControl):
		return refuse(CodePath, name, "contains a control character")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return refuse(CodePath, name, "has an empty, \".\" or \"..\" part")
		}
		if credentialPart(part) {
			return refuse(CodeCredential, name, "looks like a credential and is never uploaded")
		}
	}
	if credentialFile(path.Base(name)) {
		return refuse(CodeCredential, name, "looks like a private key and is never uploaded")
	}
	return nil
}

func credentialPart(part string) bool {
	switch p := strings.ToLower(part); p {
	case ".ssh", ".aws", ".azure", ".git", "credentials", ".env":
		return true
	default:
		return strings.HasPrefix(p, ".env.")
	}
}

func credentialFile(base string) bool {
	base = strings.ToLower(base)
	switch base {
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", ".netrc", ".pgpass", ".npmrc", ".pypirc":
		return true
	}
	switch path.Ext(base) {
	case ".pem", ".key", ".pfx", ".p12", ".kdbx":
		return true
	}
	return false
}

// Root is a folder that was checked when it was opened. Open walks from the file system's root each
// time, so that a folder that is replaced by a link afterwards is refused as well.
type Root struct{ dir string }

// OpenRoot checks that dir is an absolute, clean path to a real directory with no link anywhere in
// it.
func OpenRoot(dir string) (Root, error) {
	if err := checkRootName(dir); err != nil {
		return Root{}, err
	}
	handle, err := openNoLink(dir, true)
	if err != nil {
		return Root{}, refuse(CodeRoot, "", "is not a directory, or reached through a symbolic link: %v", reason(err))
	}
	defer handle.Close()
	info, err := handle.Stat()
	if err != nil || !info.IsDir() {
		return Root{}, refuse(CodeRoot, "", "is not a directory")
	}
	return Root{dir: dir}, nil
}

// reason drops the path of err: it would name the local root (S146).
func reason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// Scan measures one file, which must hold 1 to limit bytes.
func (r Root) Scan(ctx context.Context, name string, limit int64) (File, error) {
	if err := CheckPath(name); err != nil {
		return File{}, err
	}
	handle, before, err := r.open(name)
	if err != nil {
		return File{}, err
	}
	defer handle.Close()
	if size := before.Size(); size < 1 || size > limit {
		return File{}, refuse(CodeSize, name, "has %d bytes; 1 to %d are allowed", size, limit)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(contextReader{ctx, handle}, limit+1))
	if err != nil {
		return File{}, unreadable(ctx, name, err)
	}
	file := File{Path: name, Size: n, ModTime: before.ModTime().UnixNano(), SHA256: hex.EncodeToString(sum.Sum(nil))}
	return file, unchanged(handle, file)
}

// Check reads the whole file again and compares it with what is known of it.
func (r Root) Check(ctx context.Context, known File) error {
	now, err := r.Scan(ctx, known.Path, known.Size)
	switch e, ok := errors.AsType[*Error](err); {
	case ok && e.Code == CodeSize:
		return drift(known.Path)
	case err != nil:
		return err
	case now != known:
		return drift(known.Path)
	}
	return nil
}

// Stat compares size and modification time only.
func (r Root) Stat(known File) error {
	handle, _, err := r.open(known.Path)
	if err != nil {
		return err
	}
	defer handle.Close()
	return unchanged(handle, known)
}

// Open returns the content of a known file whose size and time are still the known ones. The sender
// compares the digest while reading.
func (r Root) Open(known File) (io.ReadCloser, error) {
	handle, _, err := r.open(known.Path)
	if err != nil {
		return nil, err
	}
	if err := unchanged(handle, known); err != nil {
		handle.Close()
		return nil, err
	}
	return handle, nil
}

func (r Root) open(name string) (*os.File, os.FileInfo, error) {
	handle, err := openNoLink(r.dir+"/"+name, false)
	if err != nil {
		return nil, nil, refuse(CodeUnreadable, name, "cannot be opened (symbolic links are not followed): %v", reason(err))
	}
	info, err := handle.Stat()
	if err != nil {
		handle.Close()
		return nil, nil, Unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		handle.Close()
		return nil, nil, refuse(CodePath, name, "is not a regular file")
	}
	return handle, info, nil
}

func unchanged(handle *os.File, known File) error {
	info, err := handle.Stat()
	if err != nil {
		return refuse(CodeUnreadable, known.Path, "cannot be examined: %v", reason(err))
	}
	if info.Size() != known.Size || info.ModTime().UnixNano() != known.ModTime {
		return drift(known.Path)
	}
	return nil
}

func drift(name string) error {
	return refuse(CodeDrift, name, "changed since it was approved; make a new plan")
}

func unreadable(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return Unreadable(name, err)
}

// Unreadable is the refusal of a file that the disk does not give.
func Unreadable(name string, err error) error {
	return refuse(CodeUnreadable, name, "cannot be read: %v", reason(err))
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
