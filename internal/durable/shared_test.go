//go:build linux || darwin

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
)

// R100: each change is made from the content before it, so none is lost, whoever makes them at the
// same time.
func TestSharedUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "count")
	var all sync.WaitGroup
	for range 8 {
		s := durable.NewShared(path, 100, durable.Options{}) // as another process has it
		all.Go(func() {
			for range 5 {
				if err := s.Update(func(old *durable.Edition) ([]byte, error) {
					n, _ := strconv.Atoi(string(old.Content))
					return []byte(strconv.Itoa(n + 1)), nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := durable.NewShared(path, 100, durable.Options{})
	e := s.Read()
	defer e.Close()
	if string(e.Content) != "40" || e.Err != nil {
		t.Errorf("%s, %v", e.Content, e.Err)
	}
	if got := ls(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// An edition knows when it is no longer the content, whatever was done to the file.
func TestEditionIsCurrent(t *testing.T) {
	for name, change := range map[string]func(s *durable.Shared) error{
		"replaced": func(s *durable.Shared) error {
			return s.Update(func(*durable.Edition) ([]byte, error) { return []byte("other"), nil })
		},
		// the second time by a file with the first one's inode, on some file systems
		"replaced twice": func(s *durable.Shared) error {
			for _, text := range []string{"between", "first"} {
				if err := s.Update(func(*durable.Edition) ([]byte, error) { return []byte(text), nil }); err != nil {
					return err
				}
			}
			return nil
		},
		"changed in place": func(s *durable.Shared) error { return os.WriteFile(s.Path(), []byte("in place"), 0o600) },
		"removed":          func(s *durable.Shared) error { return os.Remove(s.Path()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := durable.NewShared(filepath.Join(t.TempDir(), "x"), 100, durable.Options{})
			absent := s.Read()
			if !absent.Current() || absent.Content != nil || absent.Err != nil {
				t.Errorf("absent: %+v", absent)
			}
			if err := s.Update(func(*durable.Edition) ([]byte, error) { return []byte("first"), nil }); err != nil {
				t.Fatal(err)
			}
			first := s.Read()
			defer first.Close()
			if absent.Current() || !first.Current() {
				t.Error("the first content was not noticed")
			}
			if err := s.Update(func(*durable.Edition) ([]byte, error) { return []byte("first"), nil }); err != nil || !first.Current() {
				t.Errorf("the same content was written again: %v", err)
			}
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			if first.Current() {
				t.Error("it was not noticed")
			}
		})
	}
	if (*durable.Edition)(nil).Current() {
		t.Error("no edition is current")
	}
}

// What is too big is not read and not written, an error of the caller's changes nothing, and a
// folder that is not there is told.
func TestSharedRefuses(t *testing.T) {
	s := durable.NewShared(filepath.Join(t.TempDir(), "x"), 10, durable.Options{})
	for _, c := range []struct {
		data []byte
		err  error
		want string
	}{{[]byte("12345678901"), nil, "11 bytes are more than 10"}, {nil, errors.New("not now"), "not now"}} {
		if err := s.Update(func(*durable.Edition) ([]byte, error) { return c.data, c.err }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if got := ls(t, filepath.Dir(s.Path())); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if err := os.WriteFile(s.Path(), []byte("12345678901"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := s.Read(); e.Err == nil || e.Content != nil || !e.Current() {
		t.Errorf("%+v", e)
	}
	none := durable.NewShared(filepath.Join(t.TempDir(), "none", "x"), 10, durable.Options{})
	if err := none.Update(func(*durable.Edition) ([]byte, error) { return []byte("1"), nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
