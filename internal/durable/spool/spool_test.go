//go:build linux || darwin

package spool_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ecluse-gate/ecluse/internal/durable"
	"github.com/ecluse-gate/ecluse/internal/durable/durabletest"
	"github.com/ecluse-gate/ecluse/internal/durable/spool"
)

// Spools belong to one at a time, and are free as soon as they are closed, also while child
// processes are started.
func TestSpoolsBelongToOne(t *testing.T) {
	path := filepath.Join(durabletest.Dir(t), "spools")
	durabletest.StartChildren(t)
	for i := range 3000 {
		s, _, err := spool.Open(path, durable.Options{})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if i == 0 {
			if _, _, err := spool.Open(path, durable.Options{}); !errors.Is(err, durable.ErrBusy) {
				t.Errorf("opened twice: %v", err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Neither what is closed nor what could not be opened keeps a descriptor.
func TestNoDescriptorIsKept(t *testing.T) {
	base := durabletest.Dir(t)
	path := filepath.Join(base, "spools")
	held, _, err := spool.Open(filepath.Join(base, "held"), durable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	before := descriptors(t)
	for range 100 {
		if _, _, err := spool.Open(filepath.Join(base, "held"), durable.Options{}); err == nil {
			t.Fatal("opened twice")
		}
	}
	if n := descriptors(t) - before; n > 50 { // others come and go
		t.Errorf("%d descriptors of folders that could not be opened", n)
	}
	s, _, err := spool.Open(path, durable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := durable.Open(base, durable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, close := range map[string]func() error{"spools": s.Close, "folder": d.Close} {
		if err := close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: closed twice with %v", name, err)
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
