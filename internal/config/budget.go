package config

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ecluse-gate/ecluse/cooldown"
)

const budgetPrefix = "budget."

// Budget is how many requests a public authority is sent at most.
type Budget struct {
	Rate  float64 // requests per second
	Burst int     // how many may go at once after a pause
}

// The bounds of a budget. A rate below the least would make clients wait for longer than any of
// them does.
const (
	leastRate, mostRate = 0.01, 100_000.0
	mostBurst           = 100_000
)

// budgetFields are the keys that a budget may have.
var budgetFields = []string{"burst", "rate"}

// cutBudget splits budget.AUTHORITY.FIELD. An authority holds dots itself.
func cutBudget(path string) (authority, field string, ok bool) {
	rest, ok := strings.CutPrefix(path, budgetPrefix)
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return rest, "", ok
	}
	return rest[:i], rest[i+1:], true
}

// readBudgets keeps what the layers say about each authority.
func (l *loader) readBudgets() {
	said := map[string]map[string]value{} // by the authority as it is written, then by field
	for _, layer := range l.layers {
		for path, v := range layer {
			name, field, ok := cutBudget(path)
			if !ok || v.group || !slices.Contains(budgetFields, field) {
				continue // refuseUnknown speaks of it
			}
			if said[name] == nil {
				said[name] = map[string]value{}
			}
			said[name][field] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		l.readBudget(name, said[name])
	}
}

func (l *loader) readBudget(name string, fields map[string]value) {
	at, v := budgetPrefix+name, anyOf(fields)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		l.cfg.settings = append(l.cfg.settings, fields[field].setting(at+"."+field))
	}
	a, err := parseAuthority(name)
	if err != nil {
		l.problems.add(at, v, "%v", err)
		return
	}
	if _, twice := l.cfg.Budgets[a]; twice {
		l.problems.add(at, v, "%s already has a budget, under another spelling", a)
		return
	}
	b := Budget{}
	rate, ok := fields["rate"]
	if !ok {
		l.problems.add(at, v, "needs a rate, as in rate: 10 (requests per second)")
		return
	}
	b.Rate, err = strconv.ParseFloat(rate.scalar, 64)
	if err != nil || rate.isList || math.IsNaN(b.Rate) || b.Rate < leastRate || b.Rate > mostRate {
		l.problems.add(at+".rate", rate, "%s is not a number of requests per second from %v to %v", quote(rate.String()), leastRate, int(mostRate))
	}
	b.Burst = max(1, int(math.Ceil(b.Rate)))
	if burst, ok := fields["burst"]; ok {
		if b.Burst, err = parseCount(burst.scalar); err != nil || burst.isList || b.Burst < 1 || b.Burst > mostBurst {
			l.problems.add(at+".burst", burst, "%s is not a number of requests from 1 to %d", quote(burst.String()), mostBurst)
		}
	}
	if l.cfg.Budgets == nil {
		l.cfg.Budgets = map[cooldown.Authority]Budget{}
	}
	l.cfg.Budgets[a] = b
}

// checkBudgets warns of budgets that bound nothing.
func (l *loader) checkBudgets() {
	authorities := slices.SortedFunc(maps.Keys(l.cfg.Budgets), func(a, b cooldown.Authority) int { return strings.Compare(a.String(), b.String()) })
	for _, a := range authorities {
		if !slices.ContainsFunc(l.cfg.upstreams(), func(u upstream) bool {
			at, err := cooldown.AuthorityOf(u.url)
			return err == nil && at == a && (u.public || u.key == advisoriesSource)
		}) {
			l.cfg.warn(budgetPrefix + a.String() + ": not the authority of a public upstream, so it has no effect")
		}
	}
}

// refuseUnknownBudgetKey reports what is no budget. Where a host ends and a key begins is ambiguous
// then.
func (l *loader) refuseUnknownBudgetKey(path string, v value) {
	if _, field, _ := cutBudget(path); v.group || !slices.Contains(budgetFields, field) {
		l.problems.add(path, v, "unknown key%s; write budget: {HOST: {rate: 10, burst: 20}}", didYouMean(field, budgetFields))
	}
}
