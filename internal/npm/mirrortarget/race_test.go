//go:build race

package mirrortarget_test

// slowed tells that the race detector slows everything down.
const slowed = true
