//go:build race

package app

// slowed tells that the race detector slows everything down.
const slowed = true
