package cooldownfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
)

const (
	version    = 1
	maxRecords = 256
	maxBytes   = 256 << 10
	// skew is how far a cooldown may lie in the future without the wall clock having been set back:
	// a process may judge with a reading of the clock that is a moment older than another's.
	skew = time.Second
)

// record is one authority's cooldown as it is kept.
type record struct {
	met     int64 // when the delay began, in nanoseconds of the wall clock
	delay   time.Duration
	ceiling time.Duration
}

// ends is the deadline, in nanoseconds of the wall clock.
func (r record) ends() int64 { return r.met + int64(r.delay) }

// ahead reports that the wall clock was set back since.
func (r record) ahead(now time.Time) bool { return r.met > now.Add(skew).UnixNano() }

// remaining is the time to the deadline. A wall clock that was set back does not shorten it: the
// whole delay counts from now. Table.Restore sees to it that it does not exceed cooldown.MaxDelay.
func (r record) remaining(now time.Time) time.Duration {
	if r.ahead(now) {
		return r.delay
	}
	passed := time.Duration(now.UnixNano() - r.met)
	return max(0, r.delay-passed)
}

// document is the file.
type document struct {
	Version   int               `json:"version"`
	Cooldowns []json.RawMessage `json:"cooldowns"`
}

// line is a record in the file.
type line struct {
	Authority string `json:"authority"`
	Met       string `json:"met"`     // RFC 3339, UTC
	Delay     string `json:"delay"`   // from met to the deadline
	Ceiling   string `json:"ceiling"` // of the next fallback delay
}

// problem is why the file, or a part of it, says nothing.
type problem struct {
	what, remedy string
	keep         bool // the file must not be replaced
}

const remedyReplace = "none is needed: the next cooldown replaces it"

// understand reads an edition. What cannot be understood is left out, and told.
func understand(e *durable.Edition) (map[cooldown.Authority]record, []problem) {
	records := map[cooldown.Authority]record{}
	switch {
	case e.Err != nil:
		return records, []problem{{what: e.Err.Error(), remedy: "make it a file of at most " + strconv.Itoa(maxBytes) + " bytes that only ecluse's user may read and write, or remove it"}}
	case e.Content == nil:
		return records, nil
	}
	var named struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(e.Content, &named) == nil && named.Version > version {
		return records, []problem{{
			what:   fmt.Sprintf("it was written by a newer ecluse (version %d of the format, known is %d)", named.Version, version),
			remedy: "run one version of ecluse on a data folder, or remove the file", keep: true,
		}}
	}
	var d document
	if err := strictjson.Decode(e.Content, &d); err != nil {
		return records, []problem{{what: err.Error(), remedy: remedyReplace}}
	}
	if d.Version != version {
		return records, []problem{{what: fmt.Sprintf("version %d is unknown", d.Version), remedy: remedyReplace}}
	}
	if len(d.Cooldowns) > maxRecords {
		return records, []problem{{what: fmt.Sprintf("it has more than %d cooldowns", maxRecords), remedy: remedyReplace}}
	}
	var problems []problem
	for i, raw := range d.Cooldowns {
		a, r, err := parse(raw)
		if err != nil {
			problems = append(problems, problem{what: fmt.Sprintf("cooldowns[%d]: %v", i, err), remedy: remedyReplace})
			continue
		}
		if old, twice := records[a]; twice { // nothing that is known is ever shortened
			r.ceiling = max(r.ceiling, old.ceiling)
			if old.ends() > r.ends() {
				r.met, r.delay = old.met, old.delay
			}
		}
		records[a] = r
	}
	return records, problems
}

func parse(raw []byte) (cooldown.Authority, record, error) {
	var l line
	if err := strictjson.Decode(raw, &l); err != nil {
		return cooldown.Authority{}, record{}, err
	}
	fail := func(field string) (cooldown.Authority, record, error) {
		return cooldown.Authority{}, record{}, fmt.Errorf("%s is not one that ecluse writes", field)
	}
	a, err := cooldown.ParseAuthority(l.Authority, 0)
	if err != nil || a.String() != l.Authority {
		return fail("authority")
	}
	met, err := time.Parse(time.RFC3339Nano, l.Met)
	// else nanoseconds overflow
	if err != nil || met.Year() < 1971 || met.Year() > 2261 || !strings.HasSuffix(l.Met, "Z") {
		return fail("met")
	}
	delay, err := time.ParseDuration(l.Delay)
	if err != nil || delay < 0 || delay > cooldown.MaxDelay {
		return fail("delay")
	}
	ceiling, err := time.ParseDuration(l.Ceiling)
	if err != nil || ceiling < cooldown.Fallback || ceiling > cooldown.MaxDelay {
		return fail("ceiling")
	}
	return a, record{met.UnixNano(), delay, ceiling}, nil
}

// render writes records, the latest deadlines first. Those that end first give way when there are
// too many.
func render(now time.Time, records map[cooldown.Authority]record) ([]byte, error) {
	all := make([]cooldown.Authority, 0, len(records))
	for a := range records {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b cooldown.Authority) int {
		if d := records[b].remaining(now) - records[a].remaining(now); d != 0 {
			return int(max(-1, min(d, 1)))
		}
		return strings.Compare(a.String(), b.String())
	})
	lines := []line{}
	for _, a := range all[:min(len(all), maxRecords)] {
		r := records[a]
		lines = append(lines, line{a.String(), time.Unix(0, r.met).UTC().Format(time.RFC3339Nano), r.delay.String(), r.ceiling.String()})
	}
	data, err := json.MarshalIndent(struct {
		Version   int    `json:"version"`
		Cooldowns []line `json:"cooldowns"`
	}{version, lines}, "", "  ")
	return append(data, '\n'), err
}
