package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
)

// TestOpenTogether: programs that open a new file at the same time take turns.
func TestOpenTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.db")
	var waits []func() program.Result
	for range 6 {
		waits = append(waits, program.Start(t, program.Command(t, nil, binary, "migrate", "-db", file)))
	}
	for _, wait := range waits {
		if got := wait(); got.Code != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// TestLinkedFile: a file that is called otherwise is the same file.
func TestLinkedFile(t *testing.T) {
	s := newSystem(t)
	held, err := s.db.hold(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	if got := s.must(0, "status").Stdout; !strings.Contains(got, "\na worker lives") {
		t.Error(got)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(s.at[1], link); err != nil {
		t.Skip(err)
	}
	s.at[1] = link
	if got := s.must(2, "work", "-drain"); !strings.Contains(got.Stderr, "another worker works ") {
		t.Errorf("%+v", got)
	}
}

// TestUnlockable: only a lock is another worker's.
func TestUnlockable(t *testing.T) {
	s := newSystem(t)
	if err := os.WriteFile(s.at[1]+".worker", []byte(strings.Repeat("no database", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.must(1, "work", "-drain"); strings.Contains(got.Stderr, "another worker") {
		t.Errorf("%+v", got)
	}
}
