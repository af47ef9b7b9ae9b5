package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged is how many bytes the other end of a connection has taken so far, false where that
// is not known. What the system has buffered for it is not among them: a writer waits until a third
// of a buffer of megabytes is free, for which a slow client may need minutes.
func acknowledged(c net.Conn) (n int64, ok bool) {
	raw, is := c.(syscall.Conn)
	if !is {
		return 0, false
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = rc.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n, ok = int64(info.Bytes_acked), true
		}
	})
	return n, ok && err == nil
}
