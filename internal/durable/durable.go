// Package durable is the only package that changes files which must survive a crash: it creates
// them once, syncs, links and removes them, and locks their folder. It knows no format and gives no
// name a meaning.
//
// A [Dir] is a private folder: absolute, owned by the user, closed to others, reached without a
// link through ancestors that nobody but root and the user may write to. The folder is held open,
// and every operation is relative to that handle, so what was checked cannot be swapped for
// something else later.
//
// Publishing a file makes these system calls, in this order, and each of them is a [Step] that a
// test can make fail:
//
//	openat(temp, O_CREAT|O_EXCL|O_NOFOLLOW, 0600)   a random name that no reader takes for a file of the folder
//	write, fsync, pread and compare                 the bytes are on the disk before they have a name
//	linkat(temp, name)                              fails if the name exists: nothing is ever replaced
//	fstatat(temp), fstatat(name)                    both are the inode that was written
//	unlinkat(temp)
//	fsync(folder)                                   without it a power loss may forget the name
//	openat(name, O_NOFOLLOW), read and compare      the same inode, the same bytes, one link
//
// Removing makes these: read and compare, unlinkat(name), fsync(folder), fsync(the removed file);
// the last one because XFS, once it has shut itself down, still answers the sync of a folder with
// success.
//
// When Publish returns nil, the file is there after a power loss. When it returns an error, the
// file may be there or not: only reading the folder again tells. Nothing is edited and nothing is
// overwritten; [Dir.Remove] takes away only a file that still holds given bytes.
//
// A process that dies between linkat and unlinkat leaves a complete file with a second, temporary
// name. [Dir.Settle] finishes that publication. A temporary file without a second name was never
// published; it is left where it is and reported.
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxRecord is the largest file in bytes that a [Dir] publishes or reads (spec S96).
const MaxRecord = 1 << 20

// Code names a class of failure in the words of the requirements; it is stable and safe to print.
type Code string

// The codes of this package.
const (
	// CodeDirectory: the folder or an ancestor is not private enough (S93)
	CodeDirectory Code = "private-directory-invalid"
	// CodeReceipt: a file could not be made durable or removed safely (S94)
	CodeReceipt Code = "receipt-failed"
	// CodeLocked: another process holds the folder (S152)
	CodeLocked Code = "journal-locked"
	// CodeUnread: a file cannot be listed, opened or read (S96)
	CodeUnread Code = "record-unreadable"
	// CodeUnsafe: a file is a link, has other names, is open to others, or is too big (S96)
	CodeUnsafe Code = "record-unsafe"
)

// Error is every error of this package.
type Error struct {
	Code Code
	// Op is the step that failed, Name the folder or the file's leaf name.
	Op, Name string
	// Detail says what is wrong and what to do. It holds no file content.
	Detail string
	// Warnings tell of things left behind, for instance a temporary file that is not ours.
	Warnings []string
	// Landed reports that the file may exist under its final name although the call failed.
	Landed bool
	// Err is the cause, if there is one.
	Err error
}

// Error says what was attempted, on what, and why it failed.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %q", e.Code, e.Op, e.Name)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause, so that errors.Is(err, fs.ErrExist) works.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf gives the code of err, or "" when it is not an error of this package.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// ErrBusy says that another process has a folder.
var ErrBusy = errors.New("another process is using this folder")

// Step names one system call that changes the disk, or makes or proves a change permanent.
type Step string

// The steps, in the order in which publishing takes them; then those of removal and of making a
// folder.
const (
	StepCreate     Step = "create"
	StepWrite      Step = "write"
	StepSync       Step = "fsync"
	StepReadBack   Step = "read-back"
	StepLink       Step = "link"
	StepCheckLink  Step = "check-link"
	StepUnlinkTemp Step = "unlink-temp"
	StepSyncDir    Step = "fsync-dir"
	StepReopen     Step = "reopen"
	StepRemove     Step = "remove"
	// StepSyncRemoved comes after the folder's sync, see Remove.
	StepSyncRemoved Step = "fsync-removed"
	StepMkdir       Step = "mkdir"
	StepSyncParent  Step = "fsync-parent"
)

// The steps of a folder of internal/durable/spool beside those of a Dir.
const (
	StepOpen  Step = "open"
	StepRead  Step = "read"
	StepClose Step = "close"
	StepTouch Step = "touch"
)

// Around stands in for every step: it must call the call, or fail in its place, or call it and fail
// all the same. It is the seam for fault injection; nil means that steps are simply taken. name is
// the file's final leaf name, or the folder's path.
type Around func(step Step, name string, call func() error) error

// Options are the options of [Open] and [Make]. The zero value is right for production.
type Options struct {
	Around Around
}

// Take takes one step, in the way that the options say.
func (o Options) Take(step Step, name string, call func() error) error {
	if o.Around == nil {
		return call()
	}
	return o.Around(step, name, call)
}

const (
	tempPrefix = ".publishing-"
	tempHex    = 32
)

// newTemp makes a name that no other publication has: 128 random bits.
func newTemp() string {
	var raw [tempHex / 2]byte
	_, _ = rand.Read(raw[:]) // never fails, see crypto/rand
	return tempPrefix + hex.EncodeToString(raw[:])
}

// isTemp reports whether name is one that newTemp makes. Such a name is never a valid leaf.
func isTemp(name string) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	if !ok || len(rest) != tempHex {
		return false
	}
	return strings.Trim(rest, "0123456789abcdef") == ""
}

// CheckLeaf reports what is wrong with a file name, or nil: 1 to 200 ASCII letters, digits, dots,
// underscores and hyphens, starting with a letter or digit, not ending with a dot, and no device
// name of Windows with or without an extension (S95).
func CheckLeaf(name string) error {
	bad := func(why string) error {
		return &Error{Code: CodeReceipt, Op: "name", Name: clip(name), Detail: why}
	}
	if name == "" || len(name) > 200 {
		return bad("a name must have 1 to 200 characters")
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return bad("a name may contain only letters, digits, '.', '_' and '-', and must start with a letter or digit")
		}
	}
	if name[len(name)-1] == '.' {
		return bad("a name must not end with a dot")
	}
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	if isDevice(stem) {
		return bad("the name is reserved on Windows")
	}
	return nil
}

func isDevice(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '0' && stem[3] <= '9'
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}
