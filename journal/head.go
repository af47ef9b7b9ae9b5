package journal

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

// headSuffix makes the name of the head from that of the folder. The head lies beside the folder,
// so that a folder that an older copy was put in the place of is behind it.
const headSuffix = ".head"

// head is the payload of the head: which entry is the last one.
type head struct {
	Version    string `json:"version"`
	PlanDigest string `json:"plan_digest"`
	Number     int    `json:"number"`
	Link       string `json:"link"`
}

// landmark is the entry that the head should name: the last one but results. A result that is taken
// away leaves its attempt open, which shows without a head, and can be resolved.
func (r *Record) landmark() (int, string) {
	for _, c := range slices.Backward(r.chain) {
		if r.facts[c.name].Closes == "" {
			return c.Number, c.digest
		}
	}
	return -1, r.unlinked()
}

// advance makes the head name the landmark.
func (l *Layout) advance(d beside, r *Record) error {
	number, digest := r.landmark()
	return l.writeHead(d, r.planDigest, number, digest)
}

// beside is a folder that files can be kept next to.
type beside interface {
	Path() string
	Mounted() (bool, error)
	ReadBeside(suffix string, maxBytes int64) ([]byte, error)
	WriteBeside(suffix string, data []byte) error
}

// writeHead replaces the head. The entry that it names is on the disk already: a head that was not
// written is behind the journal, which is no fault.
func (l *Layout) writeHead(d beside, planDigest string, number int, digest string) error {
	_, data, err := l.seal(headSuffix, head{version, planDigest, number, digest}, nil)
	if err != nil {
		return err
	}
	return l.folder(d.WriteBeside(headSuffix, data))
}

// canHead finds out whether a head can be kept, by writing one that names no entry of the plan. It
// cannot where the folder above is closed to us, or is another file system: what is written there
// may not be there when the folder is mounted the next time.
func (l *Layout) canHead(d beside, r *Record, planDigest string) (bool, error) {
	mounted, err := d.Mounted()
	if err != nil || mounted {
		return false, l.folder(err)
	}
	err = l.writeHead(d, planDigest, -1, r.unlinked())
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return false, nil
	}
	return err == nil, err
}

// compare holds the journal in d against its head, and notes in the record what follows from that.
func (l *Layout) compare(d beside, r *Record) *Error {
	h := l.readHead(d, r)
	switch {
	case h == nil && r.headed():
		r.displaced = true
		return nil
	case h == nil || h.Number < 0:
		r.behind = r.headed()
		if len(r.chain) > 0 && !r.headed() {
			r.warnings = append(r.warnings, "nothing could be kept beside the folder, so that an older copy of this journal in its place would not be noticed")
		}
		return nil
	}
	number, _ := r.tip()
	if h.Number > number {
		return l.fault(CodeInvalid, "", "", "entries that were written are missing: an older copy of the journal was put back, or its last entries were "+
			"removed (%s names entry %d, the last one here is %d); put the newest copy back", filepath.Base(d.Path())+headSuffix, h.Number, number)
	}
	for _, c := range r.chain {
		if c.Number == h.Number && c.digest == h.Link {
			last, _ := r.landmark()
			r.behind = h.Number < last
			return nil
		}
	}
	return l.fault(CodeInvalid, "", "", "the journal is another one than %s knows: entries were exchanged; put the newest copy back",
		filepath.Base(d.Path())+headSuffix)
}

// readHead gives the head of this journal, nil without one. A head that cannot be read, or that is
// of another journal, is none.
func (l *Layout) readHead(d beside, r *Record) *head {
	data, err := d.ReadBeside(headSuffix, strictjson.MaxBytes)
	if err != nil {
		return nil
	}
	e, err := l.unseal(headSuffix, data)
	if err != nil {
		return nil
	}
	h := &head{}
	if err := e.Decode(h); err != nil || h.Version != version || h.PlanDigest != r.planDigest {
		return nil
	}
	return h
}

var _ beside = (*durable.Dir)(nil)
