package record_test

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/internal/source/plan"
	"github.com/ecluse-gate/ecluse/internal/source/record"
	"github.com/ecluse-gate/ecluse/internal/strictjson"
	"github.com/ecluse-gate/ecluse/journal"
	"github.com/ecluse-gate/ecluse/journal/journaltest"
	"github.com/ecluse-gate/ecluse/retryafter"
)

// restricted is a journal whose one read was throttled.
func restricted(t *testing.T, r journal.Restriction) *run {
	t.Helper()
	j := newRun(t)
	x, err := j.j.Begin(j.now, journal.Request{Method: "GET", URL: "https://demo.search.windows.net"})
	must(t, err)
	_, err = x.Restrict(r)
	must(t, err)
	return j
}

// S16 to S19, S108, S112: what a restriction does to the status when only its canonical pair is
// known, beside what the header field itself says. Nothing that is unknown is ever a zero wait.
func TestRestrictionStatus(t *testing.T) {
	header := func(values ...string) journal.Restriction {
		return record.FromHeaders(retryafter.Parse(values, start), "id")
	}
	typed := func(kind string, value int64) journal.Restriction {
		return record.FromTyped(retryafter.Canonical{Kind: kind, Value: value}, start, "id")
	}
	for name, tt := range map[string]struct {
		r      journal.Restriction
		origin string
		pair   record.RetryAfter
		after  time.Duration
		state  journal.State
		rest   int64
	}{
		"seconds":         {header("30"), record.OriginHeaders, record.RetryAfter{"seconds", 30}, 10 * time.Second, journal.Waiting, 20},
		"overlong":        {header("60"), record.OriginHeaders, record.RetryAfter{"overlong", 0}, 10 * time.Second, journal.Waiting, 50},
		"unrepresentable": {header("99999999999999999999"), record.OriginHeaders, record.RetryAfter{"overlong", 0}, time.Hour, journal.Unresolved, 0},
		"oversized":       {header(string(make([]byte, 200))), record.OriginHeaders, record.RetryAfter{"overlong", 0}, time.Hour, journal.Unresolved, 0},
		"missing":         {header(), record.OriginHeaders, record.RetryAfter{"missing", 0}, 0, journal.Waiting, 1},
		"invalid":         {header("soon"), record.OriginHeaders, record.RetryAfter{"invalid", 0}, 0, journal.Waiting, 1},
		"date": {
			header(retryafter.FormatDate(start.Add(time.Minute))), record.OriginHeaders, record.RetryAfter{"date", start.Unix() + 60}, 0, journal.Waiting, 60,
		},
		"typed seconds":  {typed("seconds", 30), record.OriginTyped, record.RetryAfter{"seconds", 30}, 10 * time.Second, journal.Waiting, 20},
		"typed date":     {typed("date", start.Unix()+50), record.OriginTyped, record.RetryAfter{"date", start.Unix() + 50}, 10 * time.Second, journal.Waiting, 40},
		"typed old date": {typed("date-rfc850", start.Unix()-50), record.OriginTyped, record.RetryAfter{"date-rfc850", start.Unix() - 50}, 0, journal.Elapsed, 0},
		"typed missing":  {typed("missing", 0), record.OriginUnavailable, record.RetryAfter{"missing", 0}, 1000 * time.Hour, journal.Unresolved, 0},
		"typed invalid":  {typed("invalid", 0), record.OriginUnavailable, record.RetryAfter{"invalid", 0}, 1000 * time.Hour, journal.Unresolved, 0},
		"typed overlong": {typed("overlong", 0), record.OriginUnavailable, record.RetryAfter{"overlong", 0}, 1000 * time.Hour, journal.Unresolved, 0},
		"typed, clock unusable": {
			record.FromTyped(retryafter.Canonical{Kind: "seconds", Value: 5}, time.Time{}, ""), record.OriginUnavailable,
			record.RetryAfter{"seconds", 5},
			time.Hour, journal.Unresolved, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := restricted(t, tt.r)
			must(t, r.j.Close())
			got, err := journal.Read(r.dir, record.NewLayout())
			must(t, err)
			s := got.Status(start.Add(tt.after), "")
			if s.State != tt.state || s.SecondsRemaining != nil && *s.SecondsRemaining != tt.rest || tt.state == journal.Unresolved && s.Reason != journal.ReasonNoEnd {
				t.Errorf("%+v", s)
			}
			if one := got.Restrictions()[0]; one.Origin != tt.origin || record.RetryAfterOf(one) != tt.pair {
				t.Errorf("%s %s", one.Origin, one.Metadata)
			}
		})
	}
}

// S18, S112, S115, section 14: restrictions whose every hash is right and that contradict
// themselves. Each is refused at the field where the contradiction is.
func TestRestrictionContradictions(t *testing.T) {
	r := start.Unix()
	type object = map[string]any
	timed := func(kind string, value int64, received, notBefore, delay any) func(object) {
		return func(b object) {
			b["metadata"] = object{"kind": kind, "value": value}
			b["timing"] = object{"received_at_utc": received, "not_before_utc": notBefore, "server_delay_seconds": delay}
		}
	}
	run := restricted(t, record.FromHeaders(retryafter.Parse([]string{"60"}, start), "id"))
	must(t, run.j.Close())
	good, _, err := journal.ReadFiles(run.dir, record.NewLayout())
	must(t, err)
	for name, tt := range map[string]struct {
		edit  func(b object)
		field string // "" means that the journal is sound
	}{
		"nothing edited":              {func(object) {}, ""},
		"value 30":                    {timed("seconds", 30, r, r+30, int64(30)), ""},
		"value 31":                    {timed("seconds", 31, r, r+31, int64(31)), "metadata.value"},
		"value below zero":            {timed("seconds", -1, r, r-1, int64(-1)), "metadata.value"},
		"seconds without delay":       {timed("seconds", 5, r, r+5, nil), "timing.server_delay_seconds"},
		"seconds with another delay":  {timed("seconds", 5, r, r+6, int64(6)), "timing.server_delay_seconds"},
		"seconds without end":         {timed("seconds", 5, r, nil, nil), "timing.not_before_utc"},
		"a receipt with a fraction":   {timed("seconds", 5, r, r+6, int64(5)), ""},
		"end too early":               {timed("seconds", 5, r, r+4, int64(5)), "timing.not_before_utc"},
		"end too late":                {timed("seconds", 5, r, r+7, int64(5)), "timing.not_before_utc"},
		"missing":                     {timed("missing", 0, r, r+1, nil), ""},
		"missing, zero wait":          {timed("missing", 0, r, r, nil), "timing.not_before_utc"},
		"missing with a delay":        {timed("missing", 0, r, r+1, int64(1)), "timing.server_delay_seconds"},
		"missing with a value":        {timed("missing", 1, r, r+1, nil), "metadata.value"},
		"invalid":                     {timed("invalid", 0, r, r+1, nil), ""},
		"invalid, long wait":          {timed("invalid", 0, r, r+60, nil), "timing.not_before_utc"},
		"overlong":                    {timed("overlong", 0, r, r+31, int64(31)), ""},
		"overlong, unknown":           {timed("overlong", 0, r, nil, nil), ""},
		"overlong but short":          {timed("overlong", 0, r, r+30, int64(30)), "timing.server_delay_seconds"},
		"overlong, end without delay": {timed("overlong", 0, r, r+31, nil), "timing.server_delay_seconds"},
		"overlong, delay without end": {timed("overlong", 0, r, nil, int64(31)), "timing.not_before_utc"},
		"overlong, shortened":         {timed("overlong", 0, r, r+31, int64(60)), "timing.not_before_utc"},
		"overlong, a wrapping delay":  {timed("overlong", 0, r, r-1, int64(9007199254740991)), "timing.not_before_utc"},
		"overlong with a value":       {timed("overlong", 31, r, r+31, int64(31)), "metadata.value"},
		"date":                        {timed("date", r+90, r, r+90, nil), ""},
		"old date":                    {timed("date-rfc850", r-90, r, r-90, nil), ""},
		"date, another end":           {timed("date", r+90, r, r+60, nil), "timing"},
		"date without end":            {timed("date", r+90, r, nil, nil), "timing"},
		"date with a delay":           {timed("date", r+90, r, r+90, int64(90)), "timing"},
		"date beyond the year 9999":   {timed("date", 253402300800, r, r, nil), "metadata.value"},
		"end beyond the year 9999":    {timed("seconds", 5, int64(253402300799), int64(253402300804), int64(5)), "timing"},
		"receipt before the year 1":   {timed("seconds", 5, int64(-62135596801), int64(-62135596796), int64(5)), "timing"},
		"no receipt, no end":          {timed("seconds", 5, nil, nil, nil), ""},
		"no receipt, an end":          {timed("seconds", 5, nil, r, int64(5)), "timing"},
		"no such kind":                {timed("minutes", 1, r, r+60, nil), "metadata.kind"},
		"no such origin":              {func(b object) { b["origin"] = "guess" }, "origin"},
		"unavailable with an end":     {func(b object) { b["origin"] = record.OriginUnavailable }, "timing"},
		"typed without a time":        {func(b object) { b["origin"] = record.OriginTyped }, "origin"},
		"a client library's error":    {func(b object) { b["origin"] = record.OriginNativeError }, ""},
		"an unknown member":           {func(b object) { b["metadata"] = object{"kind": "overlong", "value": 0, "more": 1} }, "metadata.more"},
		"a kind that is none":         {func(b object) { b["metadata"] = object{"kind": 1, "value": 0} }, "metadata.kind"},
		"no value":                    {func(b object) { b["metadata"] = object{"kind": "overlong"} }, "metadata.value"},
		"a review with a server's word": {func(b object) {
			b["origin"], b["request_id"] = "operator-review", nil
			b["review"] = object{"outcome": "applied", "approval": plan.Digest(1)}
			b["timing"] = object{"received_at_utc": r, "not_before_utc": r + 600, "server_delay_seconds": nil}
		}, "metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			const file = "backoff-0000.json"
			files := maps.Clone(good)
			var doc object
			must(t, json.Unmarshal(files[file], &doc))
			payload, _ := doc["payload"].(object)
			tt.edit(payload)
			doc["integrity"] = plan.Digest(payload)
			if files[file], err = strictjson.Canonical(doc); err != nil {
				t.Fatal(err)
			}
			_, faults, err := files.Inspect(record.NewLayout())
			must(t, err)
			if tt.field == "" && len(faults) == 0 {
				return
			}
			if len(faults) != 1 || faults[0].Entry != file || faults[0].Field != tt.field || faults[0].FullCode() != "file-upload-evidence-invalid" {
				t.Errorf("want a fault at %q, got %v", tt.field, faults)
			}
		})
	}
}

// S100: other versions than 1.0 are invalid.
func TestBackoffVersion(t *testing.T) {
	e := approved(t, 1)
	for _, version := range []string{"1.1", "2.0", "1"} {
		_, err := journal.Create(filepath.Join(journaltest.Dir(t), "j"), record.NewLayout(), record.Run{Document: e.Document, BackoffVersion: version}, journal.Options{})
		if f, ok := errors.AsType[*journal.Error](err); !ok || !errors.Is(err, journal.CodeInvalid) || f.Entry != record.RunName || f.Field != "backoff_version" {
			t.Errorf("%q: %v", version, err)
		}
	}
}
