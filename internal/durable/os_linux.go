package durable

import "golang.org/x/sys/unix"

// searchOnly opens an ancestor that may be passed through but not listed.
const searchOnly = unix.O_PATH
