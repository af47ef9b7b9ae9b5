package app

import "testing"

// Issue 13: the default of cache.maxFetching follows the memory that there is.
func TestAutoRoom(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ memory, kept, want int64 }{
		{512 * mib, 256 * mib, 64 * mib},
		{256 * mib, 256 * mib, leastRoom},
		{100 * mib, 256 * mib, leastRoom},
		{8192 * mib, 256 * mib, 1984 * mib},
		{0, 256 * mib, usualRoom},
	} {
		if got := autoRoom(c.memory, c.kept); got != c.want {
			t.Errorf("%d MiB, %d for the cache: %d MiB, want %d", c.memory/mib, c.kept/mib, got/mib, c.want/mib)
		}
	}
	if n := memory(); n <= 0 {
		t.Errorf("the memory of this machine: %d", n)
	}
}
