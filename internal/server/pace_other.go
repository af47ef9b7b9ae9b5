//go:build !linux

package server

import "net"

// acknowledged is known on Linux only.
func acknowledged(net.Conn) (int64, bool) { return 0, false }
