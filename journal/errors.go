package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// The codes of this package, before the layout's prefix (S102, S110, S114, S115, S99). Codes of the folder itself carry no prefix:
// "private-directory-invalid", "receipt-failed", "journal-locked".
const (
	CodeInvalid    = "evidence-invalid"    // something in the folder is not what this program writes
	CodeUnreadable = "evidence-unreadable" // the folder or a file cannot be read
	CodeMissing    = "provenance-missing"  // a required entry is absent, or there are too many files
	CodeWaiting    = "backoff-waiting"     // a restriction has not ended
	CodeUnresolved = "backoff-unresolved"  // the end of a restriction, or of a request, is not known
	CodeLimit      = "backoff-limit"       // the journal holds all the restrictions that it may hold
	CodeExists     = "journal-exists"      // a new journal needs an empty folder
)

// Error is every error of this package that is not about the folder itself.
type Error struct {
	// Code is one of the codes above behind the layout's prefix.
	Code string
	// Entry and Field say where, as far as that is known.
	Entry, Field string
	// Reason says what is wrong. It never holds a value from a file.
	Reason string
	// Status is set when the code is CodeWaiting or CodeUnresolved.
	Status *Status
	// Err is the cause, if there is one.
	Err error
}

// Error says what, where and why.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Code)
	if e.Entry != "" {
		b.WriteString(": " + e.Entry)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf gives the stable code of an error of this package, of the folder below it included, or "".
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return string(durable.CodeOf(err))
}

func (l *Layout) code(code string) string {
	if l.Prefix == "" {
		return code
	}
	return l.Prefix + "-" + code
}

// fault is one finding of the loader.
func (l *Layout) fault(code, entry, field, format string, args ...any) *Error {
	return &Error{Code: l.code(code), Entry: entry, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// foreign turns any error that a layout's function or the reader returned into a fault of an entry.
func (l *Layout) foreign(entry string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Entry == "" {
			e.Entry = entry
		}
		return e
	}
	if d, ok := errors.AsType[*DecodeError](err); ok {
		return l.fault(CodeInvalid, entry, d.Field, "%s", d.Reason)
	}
	switch durable.CodeOf(err) {
	case durable.CodeUnread:
		return &Error{Code: l.code(CodeUnreadable), Entry: entry, Err: err}
	case durable.CodeUnsafe:
		return &Error{Code: l.code(CodeInvalid), Entry: entry, Err: err}
	default:
	}
	return l.fault(CodeInvalid, entry, "", "%v", err)
}
