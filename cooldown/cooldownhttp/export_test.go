package cooldownhttp

// Remembered is how many connections the transport remembers.
func Remembered(t *Transport) int {
	n := 0
	t.connections.Range(func(any, any) bool { n++; return true })
	return n
}
