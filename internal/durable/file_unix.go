//go:build linux || darwin

package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// inode identifies a file whatever its names.
type inode struct{ dev, ino uint64 }

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), uint64(st.Ino)} } //nolint:unconvert // types differ by system

// Publish makes name exist with exactly data, durably, or fails. An existing name is never touched:
// the error then wraps fs.ErrExist. See the package comment for the steps; an error after the link
// has Landed set.
func (d *Dir) Publish(name string, data []byte) error {
	if err := CheckLeaf(name); err != nil {
		return err
	}
	if len(data) == 0 || len(data) > MaxRecord {
		return &Error{Code: CodeReceipt, Op: "size", Name: name, Detail: fmt.Sprintf("a record must have 1 to %d bytes, not %d", MaxRecord, len(data))}
	}
	p := publication{d: d, name: name, temp: newTemp(), data: data}
	err := p.run()
	if p.file != nil {
		if cerr := p.file.Close(); err == nil && cerr != nil {
			err = p.fail("close", cerr)
		}
	}
	return err
}

// publication is one run of Publish.
type publication struct {
	d          *Dir
	name, temp string
	data       []byte
	file       *os.File // open on the temporary file
	id         inode
	linked     bool
}

func (p *publication) run() error {
	steps := []struct {
		step Step
		call func() error
	}{
		{StepCreate, p.create},
		{StepWrite, func() error { _, err := p.file.Write(p.data); return err }},
		{StepSync, func() error { return p.file.Sync() }},
		{StepReadBack, p.readBack},
		{StepLink, p.link},
		{StepCheckLink, p.checkLink},
		{StepUnlinkTemp, func() error { return unlink(p.d.fd(), p.temp) }},
		{StepSyncDir, func() error { return p.d.file.Sync() }},
		{StepReopen, p.reopen},
	}
	for _, s := range steps {
		if err := p.d.opt.Take(s.step, p.name, s.call); err != nil {
			return p.fail(s.step, err)
		}
	}
	return nil
}

func (p *publication) create() error {
	var fd int
	err := Again(func() (err error) {
		fd, err = unix.Openat(p.d.fd(), p.temp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	p.file = os.NewFile(uintptr(fd), p.temp)
	st, err := stat(fd)
	if err != nil {
		return err
	}
	p.id = inodeOf(st)
	return checkRecord(st, 1)
}

func (p *publication) readBack() error {
	got := make([]byte, len(p.data)+1)
	n, err := p.file.ReadAt(got, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(got[:n], p.data) {
		return errors.New("the bytes read back differ from those written")
	}
	return nil
}

func (p *publication) link() error {
	err := Again(func() error { return unix.Linkat(p.d.fd(), p.temp, p.d.fd(), p.name, 0) })
	p.linked = err == nil
	return err
}

// checkLink proves that both names are the file that was written: somebody could have swapped the
// temporary name before the link.
func (p *publication) checkLink() error {
	for _, name := range []string{p.temp, p.name} {
		st, err := statAt(p.d.fd(), name)
		if err != nil {
			return err
		}
		if inodeOf(st) != p.id || st.Nlink != 2 {
			return errors.New("the linked file is not the one that was written")
		}
	}
	return nil
}

func (p *publication) reopen() error {
	got, id, err := p.d.read(p.name, MaxRecord)
	switch {
	case err != nil:
		return err
	case id != p.id:
		return errors.New("the published name refers to another file")
	case !bytes.Equal(got, p.data):
		return errors.New("the published file differs from what was written")
	}
	return nil
}

// fail cleans up and builds the error. A temporary name is removed only while it still is our inode
// (S97).
func (p *publication) fail(step Step, cause error) error {
	e := &Error{Code: CodeReceipt, Op: string(step), Name: p.name, Err: cause}
	st, err := statAt(p.d.fd(), p.temp)
	switch {
	case p.file == nil || errors.Is(err, fs.ErrNotExist):
	case err != nil || inodeOf(st) != p.id:
		e.Warnings = append(e.Warnings, fmt.Sprintf("the temporary file %s is not the one that was written and was left alone", p.temp))
	default:
		if err := unlink(p.d.fd(), p.temp); err != nil {
			e.Warnings = append(e.Warnings, fmt.Sprintf("the temporary file %s could not be removed", p.temp))
		}
	}
	if st, err := statAt(p.d.fd(), p.name); p.linked || err == nil && p.file != nil && inodeOf(st) == p.id {
		e.Landed = true
	}
	return e
}

// Read gives the bytes of one file of the folder: a regular file of the user, closed to others,
// with one name, at most max bytes (and never more than [MaxRecord]), the same inode before and
// after the open (S96). A file whose second name is the leftover of its own interrupted publication
// is accepted; [Dir.Settle] removes that name. A missing file gives an error that wraps
// fs.ErrNotExist.
func (d *Dir) Read(name string, maxBytes int64) ([]byte, error) {
	if err := CheckLeaf(name); err != nil {
		return nil, err
	}
	data, _, err := d.read(name, min(maxBytes, MaxRecord))
	return data, err
}

func (d *Dir) read(name string, maxBytes int64) ([]byte, inode, error) {
	unread := func(err error) error { return &Error{Code: CodeUnread, Op: "read", Name: name, Err: err} }
	unsafe := func(why string) error { return &Error{Code: CodeUnsafe, Op: "read", Name: name, Detail: why} }
	before, err := statAt(d.fd(), name)
	if err != nil {
		return nil, inode{}, unread(err)
	}
	if err := checkRecord(before, d.allowedLinks(before)); err != nil {
		return nil, inode{}, unsafe(err.Error())
	}
	file, err := d.open(name)
	if err != nil {
		return nil, inode{}, unread(err)
	}
	defer file.Close()
	opened, err := stat(int(file.Fd()))
	if err != nil {
		return nil, inode{}, unread(err)
	}
	if inodeOf(opened) != inodeOf(before) {
		return nil, inode{}, unsafe("the file was replaced while it was opened")
	}
	if opened.Size > maxBytes {
		return nil, inode{}, unsafe(fmt.Sprintf("the file has %d bytes, more than %d", opened.Size, maxBytes))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, inode{}, unread(err)
	}
	after, err := statAt(d.fd(), name)
	if err != nil {
		return nil, inode{}, unread(err)
	}
	if inodeOf(after) != inodeOf(before) || after.Size != int64(len(data)) || int64(len(data)) > maxBytes {
		return nil, inode{}, unsafe("the file changed while it was read")
	}
	return data, inodeOf(opened), nil
}

// allowedLinks is 1, or 2 when the second name is a leftover temporary name of this folder.
func (d *Dir) allowedLinks(st *unix.Stat_t) uint64 {
	if st.Nlink != 2 {
		return 1
	}
	_, temps, err := d.list(maxListed)
	if err != nil {
		return 1
	}
	for _, temp := range temps {
		if other, err := statAt(d.fd(), temp); err == nil && inodeOf(other) == inodeOf(st) {
			return 2
		}
	}
	return 1
}

// checkRecord reports what disqualifies a file, or nil.
func checkRecord(st *unix.Stat_t, links uint64) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("not a regular file")
	case int(st.Uid) != os.Geteuid():
		return errors.New("the file is owned by another user")
	case st.Mode&0o077 != 0:
		return fmt.Errorf("the file is accessible to group or others (mode %04o)", st.Mode&0o7777)
	case uint64(st.Nlink) != links: //nolint:unconvert // types differ by system
		return fmt.Errorf("the file has %d hard links instead of one", st.Nlink)
	}
	return nil
}

// Remove takes away a file that still holds exactly want, and makes the removal durable. A file
// with other bytes, or none at all, is an error and nothing is removed.
func (d *Dir) Remove(name string, want []byte) error {
	fail := func(step Step, err error) error {
		return &Error{Code: CodeReceipt, Op: string(step), Name: name, Err: err}
	}
	got, id, err := d.read(name, MaxRecord)
	if err != nil {
		return fail(StepRemove, err)
	}
	if !bytes.Equal(got, want) {
		return &Error{Code: CodeReceipt, Op: string(StepRemove), Name: name, Detail: "the file was changed by another process and is kept"}
	}
	file, err := d.open(name)
	if err != nil {
		return fail(StepRemove, err)
	}
	defer file.Close()
	if st, err := stat(int(file.Fd())); err != nil || inodeOf(st) != id {
		return fail(StepRemove, errors.Join(errors.New("the file was replaced"), err))
	}
	for _, s := range []struct {
		step Step
		call func() error
	}{
		{StepRemove, func() error { return unlink(d.fd(), name) }},
		{StepSyncDir, d.file.Sync},
		// A file system that has shut itself down after an error may still say yes to the sync of a
		// folder (XFS does), but not to that of a file. Without this a lost removal would be taken
		// for a durable one.
		{StepSyncRemoved, file.Sync},
	} {
		if err := d.opt.Take(s.step, name, s.call); err != nil {
			return fail(s.step, err)
		}
	}
	return nil
}

// open opens a file of the folder for reading, never through a link and never waiting for a pipe's
// other end.
func (d *Dir) open(name string) (*os.File, error) {
	var fd int
	err := Again(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// maxListed bounds every listing; a folder with more names than that is none of ours.
const maxListed = 16384

// List gives the names of the folder in order, and apart from them the leftovers of interrupted
// publications. More than maxNames of both together is an error with [CodeUnsafe].
func (d *Dir) List(maxNames int) (names, leftovers []string, err error) {
	return d.list(min(maxNames, maxListed))
}

func (d *Dir) list(maxNames int) (names, leftovers []string, err error) {
	fd, err := openFolder(d.fd(), ".", unix.O_RDONLY)
	if err != nil {
		return nil, nil, &Error{Code: CodeUnread, Op: "list", Name: d.path, Err: err}
	}
	folder := os.NewFile(uintptr(fd), d.path)
	defer folder.Close()
	all, err := folder.Readdirnames(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, &Error{Code: CodeUnread, Op: "list", Name: d.path, Err: err}
	}
	if len(all) > maxNames {
		return nil, nil, &Error{Code: CodeUnsafe, Op: "list", Name: d.path, Detail: fmt.Sprintf("more than %d files", maxNames)}
	}
	for _, name := range all {
		if isTemp(name) {
			leftovers = append(leftovers, name)
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.SortFunc(leftovers, strings.Compare)
	return names, leftovers, nil
}

// Settle makes what a dead process left behind permanent: it removes the temporary second name of
// every file that was published completely, and syncs the folder, so that nothing that is visible
// now can be lost by a later power loss. Temporary files that never got a name stay; each gives a
// warning.
func (d *Dir) Settle() (warnings []string, err error) {
	names, temps, err := d.list(maxListed)
	if err != nil {
		return nil, err
	}
	var published map[inode]bool
	for _, temp := range temps {
		st, err := statAt(d.fd(), temp)
		if err == nil && st.Nlink == 2 {
			if published == nil {
				published = d.inodes(names)
			}
			if published[inodeOf(st)] {
				err := d.opt.Take(StepUnlinkTemp, temp, func() error { return unlink(d.fd(), temp) })
				if err != nil {
					return warnings, &Error{Code: CodeReceipt, Op: string(StepUnlinkTemp), Name: temp, Err: err}
				}
				continue
			}
		}
		warnings = append(warnings, fmt.Sprintf("the temporary file %s of an interrupted run was left alone; it was never published", temp))
	}
	if err := d.opt.Take(StepSyncDir, d.path, d.file.Sync); err != nil {
		return warnings, &Error{Code: CodeReceipt, Op: string(StepSyncDir), Name: d.path, Err: err}
	}
	return warnings, nil
}

func (d *Dir) inodes(names []string) map[inode]bool {
	set := make(map[inode]bool, len(names))
	for _, name := range names {
		if st, err := statAt(d.fd(), name); err == nil {
			set[inodeOf(st)] = true
		}
	}
	return set
}

func unlink(dir int, name string) error {
	return Again(func() error { return unix.Unlinkat(dir, name, 0) })
}
