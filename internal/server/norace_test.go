//go:build !race

package server

// slowed tells that the race detector slows everything down.
const slowed = false
