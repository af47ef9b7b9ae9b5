package app

import (
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/ecluse-gate/ecluse/internal/config"
	"github.com/ecluse-gate/ecluse/internal/quota"
)

const (
	// roomWait is how long a listing waits for room.
	roomWait = 15 * time.Second
	// What listings that are read and rendered may take where nothing says so: of the memory that
	// cache.maxBytes leaves, the fourth part, since one of them may go beyond the bound, and the
	// collector needs room as well.
	roomShare = 4
	leastRoom = 32 << 20
	// usualRoom is what they may take where the system does not tell how much memory there is.
	usualRoom = 512 << 20
)

// newRoom is what listings may take that are read and rendered at once.
func newRoom(c config.Cache, log *slog.Logger) *quota.Budget {
	size := int64(c.MaxFetching)
	if size == 0 {
		size = autoRoom(memory(), int64(c.MaxBytes))
	}
	log.Debug("listings that are read at once", slog.Int64("bytes", size))
	return quota.New(size, roomWait)
}

// autoRoom is the default in so much memory; 0 is not known.
func autoRoom(memory, kept int64) int64 {
	if memory == 0 {
		return usualRoom
	}
	return max((memory-kept)/roomShare, leastRoom)
}

// memory is how much the process may have: what GOMEMLIMIT says, or the container's limit, or else
// what the machine has.
func memory() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return limit
	}
	for _, ask := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := ask(); err == nil && n > 0 && n < math.MaxInt64 {
			return int64(n)
		}
	}
	return 0
}
