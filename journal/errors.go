package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// Code names a class of failure. It is stable, safe to print, and a target of errors.Is:
//
//	if errors.Is(err, journal.CodeWaiting) { … }
type Code string

// Error is the code itself.
func (c Code) Error() string { return string(c) }

// The codes of this package. Those of the folder, the last three, stand without the layout's
// prefix.
const (
	// CodeInvalid: something in the folder is not what this program writes
	CodeInvalid Code = "evidence-invalid"
	// CodeUnreadable: the folder or a file cannot be read
	CodeUnreadable Code = "evidence-unreadable"
	// CodeMissing: a required entry is absent, or there are too many files
	CodeMissing Code = "provenance-missing"
	// CodeWaiting: a restriction has not ended
	CodeWaiting Code = "backoff-waiting"
	// CodeUnresolved: the end of a restriction, or of a request, is not known
	CodeUnresolved Code = "backoff-unresolved"
	// CodeLimit: the journal has as many restrictions as it may have
	CodeLimit Code = "backoff-limit"
	// CodeExists: a new journal needs an empty folder
	CodeExists Code = "journal-exists"

	// CodeFolder: the folder or an ancestor is not private enough
	CodeFolder Code = "private-directory-invalid"
	// CodeReceipt: a file could not be durably written or removed
	CodeReceipt Code = "receipt-failed"
	// CodeLocked: another process is using the folder
	CodeLocked Code = "journal-locked"
)

// Error is every error of this package but those of a layout that cannot be used.
//
// A [Layout]'s functions return one with Field and Reason to say what is wrong with an entry; the
// package fills in the rest. Any other error of theirs becomes the Reason of one.
type Error struct {
	// Code is what errors.Is compares.
	Code Code
	// Prefix goes before the code, see FullCode.
	Prefix string
	// Entry and Field say where, as far as that is known.
	Entry, Field string
	// Reason says what is wrong. This package puts no value from a file into it.
	Reason string
	// Status is set when the code is CodeWaiting or CodeUnresolved.
	Status *Status
	// Err is the cause, if there is one.
	Err error
}

// FullCode is the code behind the layout's prefix: "file-upload-evidence-invalid".
func (e *Error) FullCode() string { return e.Prefix + string(e.Code) }

// Error names the code, the place and the reason.
func (e *Error) Error() string {
	if d, ok := e.Err.(*durable.Error); ok && string(e.Code) == string(d.Code) { //nolint:errorlint // no chain to search
		return d.Error() // begins with the code and says where
	}
	var parts []string
	for _, part := range []string{e.FullCode(), e.Entry, e.Field, e.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's [Code].
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// prefix is what stands before the codes of a layout.
func (l *Layout) prefix() string {
	if l.Prefix == "" {
		return ""
	}
	return l.Prefix + "-"
}

// fault is one finding of the loader.
func (l *Layout) fault(code Code, entry, field, format string, args ...any) *Error {
	return &Error{Code: code, Prefix: l.prefix(), Entry: entry, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// foreign turns any error that a layout's function or the reader returned into a fault of an entry.
func (l *Layout) foreign(entry string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Entry == "" {
			e.Entry = entry
		}
		if e.Code == "" {
			e.Code, e.Prefix = CodeInvalid, l.prefix()
		}
		return e
	}
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return l.fault(CodeInvalid, entry, e.Field, "%s", e.Reason)
	}
	switch durable.CodeOf(err) {
	case durable.CodeUnread:
		return &Error{Code: CodeUnreadable, Prefix: l.prefix(), Entry: entry, Err: err}
	case durable.CodeUnsafe:
		return &Error{Code: CodeInvalid, Prefix: l.prefix(), Entry: entry, Err: err}
	default:
	}
	return l.fault(CodeInvalid, entry, "", "%v", err)
}

// folder types an error of the folder below, so that a caller outside of this module can name it.
// It is nil for nil.
func (l *Layout) folder(err error) error {
	d, ok := errors.AsType[*durable.Error](err)
	switch {
	case !ok:
		return err
	case d.Code == durable.CodeUnread || d.Code == durable.CodeUnsafe:
		return l.foreign("", err)
	}
	return &Error{Code: Code(d.Code), Err: err}
}
