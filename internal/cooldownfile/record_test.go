//go:build linux || darwin

package cooldownfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ecluse-gate/ecluse/cooldown"
)

var other = cooldown.Authority{Host: "::1", Port: 80}

const good = `{"version":1,"cooldowns":[{"authority":"registry.example:443","met":"2026-03-01T12:00:00Z","delay":"1m0s","ceiling":"2m0s"}]}`

// R100: bytes that this program did not write are ignored, with a warning that names the file, what
// is wrong and what to do. They end no process, hold up no authority that they do not name, and
// take nothing away that is known; the next cooldown replaces them.
func TestForeignBytes(t *testing.T) {
	entry := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	for name, text := range map[string]string{
		"empty":               "",
		"junk":                "\x00\xff junk",
		"cut":                 good[:len(good)-20],
		"no object":           "[]",
		"null":                "null",
		"more after the end":  good + "{}",
		"oversized":           good[:len(good)-2] + strings.Repeat(" ", maxBytes) + "]}",
		"deep":                `{"version":1,"cooldowns":[` + strings.Repeat("[", 5000),
		"too many":            `{"version":1,"cooldowns":[` + strings.Repeat("{},", maxRecords) + "{}]}",
		"no version":          entry(`"version":1,`, ""),
		"version 0":           entry(`"version":1`, `"version":0`),
		"version -1":          entry(`"version":1`, `"version":-1`),
		"version text":        entry(`"version":1`, `"version":"1"`),
		"unknown member":      entry(`"version":1`, `"version":1,"more":1`),
		"member twice":        entry(`"version":1`, `"version":1,"version":1`),
		"no authority":        entry(`registry.example:443`, ``),
		"authority, no port":  entry(`registry.example:443`, `registry.example`),
		"authority, big port": entry(`registry.example:443`, `registry.example:70000`),
		"authority, a URL":    entry(`registry.example:443`, `https://registry.example:443`),
		"authority, upper":    entry(`registry.example:443`, `REGISTRY.example:443`),
		"authority, user":     entry(`registry.example:443`, `u@registry.example:443`),
		"met, text":           entry(`2026-03-01T12:00:00Z`, `yesterday`),
		"met, long ago":       entry(`2026-03-01T12:00:00Z`, `0001-01-01T00:00:00Z`),
		"met, far ahead":      entry(`2026-03-01T12:00:00Z`, `9999-01-01T00:00:00Z`),
		"met, a number":       entry(`"2026-03-01T12:00:00Z"`, `1772366400`),
		"delay, negative":     entry(`1m0s`, `-1m0s`),
		"delay, over the cap": entry(`1m0s`, `10m1s`),
		"delay, absurd":       entry(`1m0s`, `99999999999h`),
		"delay, a number":     entry(`"1m0s"`, `1e400`),
		"ceiling, zero":       entry(`2m0s`, `0s`),
		"ceiling, absurd":     entry(`2m0s`, `20m0s`),
		"ceiling missing":     entry(`,"ceiling":"2m0s"`, ``),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			running := begin(t, dir)
			running.meet(start, files, 429, "60")
			write(t, dir, text)
			p := begin(t, dir)
			early := p.allowed(start, npm)
			if early.Probe() {
				t.Error("it held for something")
			}
			p.allowed(start, npm)
			if got := p.log.String(); strings.Count(got, "kept cooldowns were ignored") != 1 || !strings.Contains(got, Name) ||
				!strings.Contains(got, "problem=") || !strings.Contains(got, "remedy=") || len(got) > 2000 {
				t.Errorf("log: %.3000s", got)
			}
			running.waits(start.Add(time.Second), files, 59*time.Second)
			finish(start, early, 429, "60")
			q := begin(t, dir)
			q.waits(start, npm, time.Minute)
			if q.log.Len() == 0 || strings.Contains(q.log.String(), "ignored") {
				t.Errorf("after the next cooldown: %s", q.log)
			}
		})
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// R100: what can be understood holds, whoever stands beside it, and also for a process that is at
// work when the file is changed in place.
func TestGoodBesideBad(t *testing.T) {
	dir := t.TempDir()
	running := begin(t, dir)
	running.allowed(start, npm)
	write(t, dir, strings.Replace(good, `[{`, `[{"authority":"x"},{`, 1))
	for _, p := range []*process{running, begin(t, dir)} {
		p.waits(start.Add(time.Second), npm, 59*time.Second)
		if s := p.table.Look(start, npm); s.Ceiling != 2*time.Minute || !strings.Contains(p.log.String(), "cooldowns[0]") {
			t.Errorf("%+v, %s", s, p.log)
		}
	}
}

// R100: a newer program's file is neither read nor replaced: it may hold what this one would lose.
func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	newer := `{"version":2,"anything":[]}`
	write(t, dir, newer)
	p := begin(t, dir)
	p.meet(start, npm, 429, "60")
	p.waits(start, npm, time.Minute)
	if got := content(t, dir); got != newer {
		t.Errorf("replaced by %s", got)
	}
	if got := p.log.String(); !strings.Contains(got, "newer ecluse") || !strings.Contains(got, "a cooldown was not kept") {
		t.Errorf("log: %s", got)
	}
}

// R100: what is no file is not waited for, followed or read.
func TestNoRegularFile(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error {
			return os.Symlink(filepath.Join(filepath.Dir(path), "target"), path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "target"), []byte(good), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(dir, Name)); err != nil {
				t.Fatal(err)
			}
			p := begin(t, dir)
			p.meet(start, npm, 429, "60")
			p.waits(start, npm, time.Minute)
			if got := p.log.String(); !strings.Contains(got, "no regular file") || strings.Contains(got, "cooldown was not kept") != (name == "folder") {
				t.Errorf("log: %s", got)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "target")); err != nil || string(text) != good {
				t.Errorf("the link was followed: %s", text)
			}
		})
	}
}

// What is written is what is read, for names and addresses of every kind.
func TestRecordsRoundTrip(t *testing.T) {
	dir := t.TempDir()
	p := begin(t, dir)
	now := start.Add(123456789)
	for _, a := range []cooldown.Authority{npm, files, other, {Host: "127.0.0.1", Port: 1}, {Host: "xn--bcher-kva.example", Port: 65535}} {
		p.meet(now, a, 429, "60")
	}
	q := begin(t, dir)
	for _, s := range p.table.Snapshot(now) {
		q.waits(now.Add(1), s.Authority, time.Minute-1)
	}
}
