//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package updater

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestBusyByAnotherName: two paths that lead to one file are one.
func TestBusyByAnotherName(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no links here:", err)
	}
	p, err := openPartial(filepath.Join(dir, "result"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPartial(filepath.Join(link, "result")); !errors.Is(err, ErrBusy) {
		t.Errorf("by the link: %v", err)
	}
	p.close()
	p, err = openPartial(filepath.Join(link, "result"))
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	p.close()
}
