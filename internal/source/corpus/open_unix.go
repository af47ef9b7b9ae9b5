//go:build unix

package corpus

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func checkRootName(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || strings.ContainsRune(dir, 0) {
		return refuse(CodeRoot, "", "must be an absolute path without \".\", \"..\" or doubled slashes")
	}
	return nil
}

// openNoLink opens an absolute path component by component and refuses a link in any of them.
// O_NONBLOCK keeps a FIFO that stands where a file was from holding the walk.
func openNoLink(name string, directory bool) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	at, err := openAt(unix.AT_FDCWD, "/", flags|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for i, part := range parts {
		if part == "" {
			break
		}
		mode := flags
		if directory || i < len(parts)-1 {
			mode |= unix.O_DIRECTORY
		}
		next, err := openAt(at, part, mode)
		_ = unix.Close(at) // it was only walked through
		if err != nil {
			return nil, err
		}
		at = next
	}
	return os.NewFile(uintptr(at), filepath.Base(name)), nil
}

func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
