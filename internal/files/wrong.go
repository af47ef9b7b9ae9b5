package files

import (
	"errors"
	"io"
	"net/url"

	"github.com/ecluse-gate/ecluse/internal/integrity"
	"github.com/ecluse-gate/ecluse/internal/refusal"
)

// Wrong reports whether a file is not the one that its listing names.
func Wrong(err error) bool {
	e, ok := errors.AsType[*refusal.BadUpstream](err)
	return ok && e.Mismatch || errors.Is(err, integrity.ErrMismatch)
}

// Judged is a body whose reader hears another error where it turns out to be the wrong file.
func Judged(body io.ReadCloser, wrong func(error) error) io.ReadCloser { return judged{body, wrong} }

type judged struct {
	io.ReadCloser
	wrong func(error) error
}

func (j judged) Read(p []byte) (int, error) {
	n, err := j.ReadCloser.Read(p)
	if Wrong(err) {
		err = j.wrong(err)
	}
	return n, err
}

// CompanionSuffix makes a file's address its companion's (PEP 658).
const CompanionSuffix = ".metadata"

// CompanionOf is the address of a file's companion.
func CompanionOf(file *url.URL) *url.URL {
	u := *file
	u.Path += CompanionSuffix
	if u.RawPath != "" {
		u.RawPath += CompanionSuffix
	}
	u.Fragment, u.RawFragment = "", ""
	return &u
}
