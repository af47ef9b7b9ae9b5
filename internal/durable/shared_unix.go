//go:build unix

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenPlain opens a file for reading, never through a link and never waiting for a pipe's other
// end.
func OpenPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// unchanged looks at the open file alone: one that was replaced has lost its name.
func unchanged(file *os.File, _ string, then os.FileInfo) bool {
	var st unix.Stat_t
	if err := Again(func() error { return unix.Fstat(int(file.Fd()), &st) }); err != nil {
		return false
	}
	return st.Nlink > 0 && st.Size == then.Size() && st.Mtim.Nano() == then.ModTime().UnixNano()
}
