package advisory

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Of two processes that share a folder only one asks the source; the other takes over what it
// compiles, and its work when it ends.
func TestSharedFolder(t *testing.T) {
	dir, n := t.TempDir(), 3
	etag := ""
	serve := func() *source {
		return &source{answer: func(known string) (*http.Response, error) {
			if known != "" && known == etag {
				return respond(http.StatusNotModified, nil), nil
			}
			etag = `"` + strings.Repeat("x", n) + `"`
			return respond(http.StatusOK, zipBytes(t, npmRecords(n)...), "ETag", etag), nil
		}}
	}
	start := func(s *source, swaps *int) *Store {
		store, err := Open(context.Background(), Options{
			Dir: dir, Source: "https://osv.example", Ecosystems: npmOnly, Interval: time.Hour, Fetcher: s, OnSwap: func(*Data) { *swaps++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	ask := func(s *Store) Status {
		t.Helper()
		if err := s.Refresh(context.Background(), "npm"); err != nil {
			t.Fatal(err)
		}
		return s.Status()[0]
	}
	firstSource, secondSource := serve(), serve()
	var firstSwaps, secondSwaps int
	first, second := start(firstSource, &firstSwaps), start(secondSource, &secondSwaps)
	defer func() { _ = second.Close() }()
	if err := second.Refresh(context.Background(), "npm"); err == nil || second.Data().Loaded("npm") {
		t.Errorf("an empty folder of another process: %v", err)
	}
	ask(first)
	if st := ask(second); st.Records != 3 || secondSwaps != 1 || !st.Next.Before(time.Now().Add(2*time.Minute)) {
		t.Errorf("%+v after %d swaps", st, secondSwaps)
	}
	long := time.Now().Add(-time.Hour)
	name := filepath.Join(dir, databaseName("npm", second.Data().indexes["npm"].number))
	if err := os.Chtimes(name, long, long); err != nil {
		t.Fatal(err)
	}
	ask(first) // confirmed
	if st := ask(second); time.Since(st.Checked) > time.Minute || secondSwaps != 1 {
		t.Errorf("confirmed %v ago, %d swaps", time.Since(st.Checked), secondSwaps)
	}
	n = 4
	etag = "changed"
	ask(first)
	if st := ask(second); st.Records != 4 || secondSwaps != 2 || firstSwaps != 2 {
		t.Errorf("%+v after %d swaps", st, secondSwaps)
	}
	if len(secondSource.times()) != 0 {
		t.Errorf("both ask the source")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if st := ask(second); len(secondSource.times()) != 1 || secondSwaps != 2 || st.Records != 4 {
		t.Errorf("the work is not taken over: %d questions, %d swaps", len(secondSource.times()), secondSwaps)
	}
}

// A clock that is set back does not make old data the newest.
func TestNumbersOnlyGrow(t *testing.T) {
	store, err := Open(context.Background(), Options{Dir: t.TempDir(), Source: zipOf(t, npmRecords(3)...), Ecosystems: npmOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Refresh(context.Background(), "npm"); err != nil {
		t.Fatal(err)
	}
	ahead := store.Data().indexes["npm"]
	ahead.number += int64(time.Hour)
	x, err := compile(context.Background(), place{store.folder, store.opts.Dir}, npmOnly[0], Info{Ecosystem: "npm", Compiled: time.Now()}, &export{path: zipOf(t, npmRecords(4)...)}, ahead)
	if err != nil || x.number != ahead.number+1 {
		t.Errorf("%v, %v", x, err)
	}
}

func TestDatabaseNames(t *testing.T) {
	for name, want := range map[string]int64{
		"npm-12.db": 12, "npm-0.db": 0, "npm--1.db": 0, "npm-12.db.part": 0, "npm-.db": 0, "pypi-12.db": 0, "npm12.db": 0, "xnpm-1.db": 0,
	} {
		if n, ok := databaseNumber(name, "npm"); ok != (want > 0) || ok && n != want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
}
