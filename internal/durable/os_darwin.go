package durable

import "golang.org/x/sys/unix"

// searchOnly opens an ancestor; this system has no handle that can be passed through but not read.
const searchOnly = unix.O_RDONLY
