package advisory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
	"github.com/ecluse-gate/ecluse/internal/registry"
)

// keepDatabases is how many databases of one ecosystem stay: the last good one, and the one before
// it.
const keepDatabases = 2

// A database is named after its ecosystem and a number that only grows:
// "eco-1796126400000000000.db".
const databaseSuffix = ".db"

func databaseName(ecosystem string, number int64) string {
	return ecosystem + "-" + strconv.FormatInt(number, 10) + databaseSuffix
}

func databaseNumber(name, ecosystem string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, ecosystem+"-")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, databaseSuffix); !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0
}

// databases lists the numbers of an ecosystem's databases in a folder, the newest first.
func databases(dir, ecosystem string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, e := range entries {
		if n, ok := databaseNumber(e.Name(), ecosystem); ok {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int64) int { return cmp.Compare(b, a) })
	return numbers, nil
}

// loadNewest reads the newest database that verifies. The error says what was wrong with newer
// ones; it is nil when there are none.
func loadNewest(ctx context.Context, dir string, ecosystem registry.Ecosystem) (*index, error) {
	numbers, err := databases(dir, ecosystem.Name)
	if err != nil {
		return nil, err
	}
	var wrong error
	for _, n := range numbers {
		name := databaseName(ecosystem.Name, n)
		x, err := load(ctx, filepath.Join(dir, name), ecosystem)
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %v", name, err))
			continue
		}
		x.number, x.confirmed = n, confirmed(dir, ecosystem.Name, n)
		return x, wrong
	}
	return nil, wrong
}

// compile makes a new database beside the others, verifies it by reading it back, and only then
// gives it its name. Whatever dies on the way leaves the last good one as it was.
func compile(ctx context.Context, at place, ecosystem registry.Ecosystem, info Info, from *export, old *index) (*index, error) {
	file, err := at.folder.Create()
	if err != nil {
		return nil, durable.OfDisk(err)
	}
	x, err := compileAndLoad(ctx, file.Path(), ecosystem, info, from.path)
	if err == nil {
		err = plausible(x.info, old)
	}
	if err != nil {
		file.Discard()
		return nil, err
	}
	x.number, x.confirmed = max(info.Compiled.UnixNano(), old.next()), info.Compiled
	if _, err := file.Commit(databaseName(info.Ecosystem, x.number)); err != nil {
		return nil, durable.OfDisk(err)
	}
	return x, prune(at.folder, at.dir, info.Ecosystem)
}

func prune(folder *spool.Folder, dir, ecosystem string) error {
	numbers, err := databases(dir, ecosystem)
	if err != nil {
		return err
	}
	for _, n := range numbers[min(keepDatabases, len(numbers)):] {
		if err := folder.Remove(databaseName(ecosystem, n)); err != nil {
			return err
		}
	}
	return nil
}

// plausible compares with the last good data: exports grow, and one that lost half of its records
// has lost more than it should.
func plausible(info Info, old *index) error {
	if old != nil && 2*info.Records < old.info.Records {
		return fmt.Errorf("the export has %d records where the last good one had %d; to accept it anyway, remove %s and restart",
			info.Records, old.info.Records, info.Ecosystem+"-*"+databaseSuffix)
	}
	return nil
}

// next is a number above that of x.
func (x *index) next() int64 {
	if x == nil {
		return 1
	}
	return x.number + 1
}

// confirmed is when the source last confirmed a database: the time of the file.
func confirmed(dir, ecosystem string, number int64) time.Time {
	st, err := os.Stat(filepath.Join(dir, databaseName(ecosystem, number)))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}
