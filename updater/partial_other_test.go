//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package updater

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestBusyByAnotherName: a file is busy under each path that leads to it.
func TestBusyByAnotherName(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no links here:", err)
	}
	p, err := openPartial(filepath.Join(dir, "result"), "job")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPartial(filepath.Join(link, "result"), "job"); !errors.Is(err, ErrBusy) {
		t.Errorf("by the link: %v", err)
	}
	closeLocked(p.file)
	p, err = openPartial(filepath.Join(link, "result"), "job")
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	closeLocked(p.file)
}

// TestPatience: only a refusal of the system is tried again, for about a second.
func TestPatience(t *testing.T) {
	for _, test := range []struct {
		err                error
		refused, wantCalls int
		fails              bool
	}{{fs.ErrPermission, 3, 4, false}, {fs.ErrPermission, 1000, 11, true}, {syscall.Errno(32), 3, 4, false}, {fs.ErrNotExist, 1, 1, true}} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			err := patiently(func() error {
				if calls++; calls <= test.refused {
					return test.err
				}
				return nil
			})
			if (err != nil) != test.fails || calls != test.wantCalls || time.Since(began) > 2*time.Second {
				t.Errorf("%v: %v after %d calls in %v", test.err, err, calls, time.Since(began))
			}
		})
	}
}
