//go:build !race

package mirror

// slowed tells that the race detector slows everything down.
const slowed = false
