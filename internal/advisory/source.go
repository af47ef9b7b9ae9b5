package advisory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/advisory/osv"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
	"github.com/ecluse-gate/ecluse/internal/registry"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// Fetcher is the way to a source behind a URL. It sends one GET, with If-None-Match when etag is
// not empty, follows the rules of egress, and repeats nothing. An answer that asks for a pause is
// the error *Throttled. The caller closes the body. It must be safe for concurrent use.
type Fetcher interface {
	Fetch(ctx context.Context, address, etag string) (*http.Response, error)
}

// Throttled says that the source asked for a pause.
type Throttled struct {
	// Wait is how long; 0 when the source did not say.
	Wait time.Duration
}

// Error implements error.
func (e *Throttled) Error() string {
	if e.Wait == 0 {
		return "the advisory source is rate-limiting and gave no usable Retry-After"
	}
	return fmt.Sprintf("the advisory source is rate-limiting: retry after %s seconds", retryafter.FormatSeconds(e.Wait))
}

// maxWait bounds a pause that a source may ask for: without any bound, one wrong answer would end
// all news.
const maxWait = 24 * time.Hour

// maxDownload bounds the bytes of a fetched export.
const maxDownload = 8 << 30

// IsURL reports whether a source is fetched, and not read from this machine.
func IsURL(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
}

// Locate says where the export of one ecosystem is, given the configured source. "{ecosystem}" in
// it stands for the name as OSV writes it. A URL that does not end in .zip is taken for the root of
// OSV's own layout, {ecosystem}/all.zip; so is a folder in which that is found. A zip or folder
// without a mark may hold several ecosystems.
func Locate(source string, ecosystem registry.Ecosystem) string {
	const mark = "{ecosystem}"
	name := ecosystem.OSVName
	switch {
	case strings.Contains(source, mark):
		return strings.ReplaceAll(source, mark, name)
	case IsURL(source) && !strings.HasSuffix(source, ".zip"):
		return strings.TrimSuffix(source, "/") + "/" + name + "/all.zip"
	case IsURL(source):
		return source
	}
	for _, below := range []string{filepath.Join(source, name, "all.zip"), filepath.Join(source, name)} {
		if _, err := os.Stat(below); err == nil {
			return below
		}
	}
	return source
}

// errUnchanged says that the source still is what was compiled last.
var errUnchanged = errors.New("unchanged")

// export is an export at hand.
type export struct {
	path string
	// validator shows whether the source has changed since.
	validator string
	// release removes what was only lent.
	release func()
}

// obtain makes the export at location available on this machine. known is the validator of what is
// there already.
func (s *Store) obtain(ctx context.Context, folder *spool.Folder, location, known string) (*export, error) {
	if !IsURL(location) {
		validator, err := osv.Fingerprint(location)
		if err == nil && validator == known {
			err = errUnchanged
		}
		return &export{path: location, validator: validator, release: func() {}}, err
	}
	if s.opts.Fetcher == nil {
		return nil, errors.New("a URL as source needs an HTTP transport")
	}
	file, err := folder.Create() // first: a disk that fails costs the source no request
	if err != nil {
		return nil, durable.OfDisk(err)
	}
	from, err := s.download(ctx, file, location, known)
	if err != nil {
		file.Discard()
	}
	return from, err
}

// download keeps a body as a file for as long as it is needed: a zip is read from its end.
func (s *Store) download(ctx context.Context, file *spool.File, location, known string) (*export, error) {
	resp, err := s.opts.Fetcher.Fetch(ctx, location, known)
	if err != nil {
		return nil, pause(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && known != "":
		return nil, errUnchanged
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the advisory source answered with status %d", resp.StatusCode)
	}
	n, err := io.Copy(durable.DiskWriter{To: file}, io.LimitReader(resp.Body, maxDownload+1))
	if err == nil && n > maxDownload {
		err = osv.ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return &export{path: file.Path(), validator: resp.Header.Get("ETag"), release: file.Discard}, nil
}

// pause bounds what a source asks for, and takes a refusal of our own cooldown for the same.
func pause(err error) error {
	var refusal interface{ RetryAfterSeconds() int64 }
	var asked *Throttled
	switch {
	case errors.As(err, &asked):
		return &Throttled{Wait: min(asked.Wait, maxWait)}
	case errors.As(err, &refusal):
		return &Throttled{Wait: time.Duration(min(refusal.RetryAfterSeconds(), int64(maxWait/time.Second))) * time.Second}
	}
	return err
}
