package service

import (
	"net/url"
	"strings"
	"testing"
)

// Both spellings of an address mean the same, and a key may hold anything once it is decoded.
func TestParseRoute(t *testing.T) {
	for path, want := range map[string]route{
		"/knowledgesources":                     {collection: "knowledgesources"},
		"/knowledgesources('a')":                {collection: "knowledgesources", key: "a", hasKey: true},
		"/knowledgesources/a":                   {collection: "knowledgesources", key: "a", hasKey: true},
		"/knowledgesources('it''s')":            {collection: "knowledgesources", key: "it's", hasKey: true},
		"/knowledgesources(%27a%2Fb%27)/status": {collection: "knowledgesources", key: "a/b", hasKey: true, sub: "status"},
		"/knowledgesources/a/files":             {collection: "knowledgesources", key: "a", hasKey: true, sub: "files"},
		"/knowledgesources('a')/files('f')":     {collection: "knowledgesources", key: "a", hasKey: true, sub: "files", subKey: "f", hasSubKey: true},
		"/knowledgesources/a/files/f":           {collection: "knowledgesources", key: "a", hasKey: true, sub: "files", subKey: "f", hasSubKey: true},
		"/indexers('i')/search.status":          {collection: "indexers", key: "i", hasKey: true, sub: "search.status"},
	} {
		got, ok := parseRoute(path)
		if !ok || got != want {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
	for _, path := range []string{"/", "", "//x", "/knowledgesources('')", "/knowledgesources('a')/files('f')/more", "/a/b/c/d/e", "/%zz"} {
		if got, ok := parseRoute(path); ok {
			t.Errorf("%q was taken as %+v", path, got)
		}
	}
}

// No address makes the parser fail, and an accepted one has a collection.
func FuzzParseRoute(f *testing.F) {
	for _, seed := range []string{"/knowledgesources('a')/files('f')", "//", "/%27", "/a('')", "/a/b/c/d/e", "/%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if got, ok := parseRoute(path); ok && got.collection == "" {
			t.Errorf("%q has no collection", path)
		}
	})
}

// A file name that is accepted stays inside a folder.
func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"a/b.txt", `a\..\b`, "/a", "..", "a//b", "c:x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, ok := cleanName(name)
		if !ok {
			return
		}
		joined, err := url.JoinPath("/folder", strings.ReplaceAll(url.PathEscape(clean), "%2F", "/"))
		if err != nil || !strings.HasPrefix(joined, "/folder/") || strings.ContainsAny(clean, "\\:") {
			t.Errorf("%q became %q (%s)", name, clean, joined)
		}
	})
}
