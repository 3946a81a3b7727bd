package updater

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSyncFails: a failure of the disk is told, as the next sync would not tell it
// again.
func TestSyncFails(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	p := &partial{file: file}
	syncer := p.followSync(t.Context(), 1)
	syncer.grow(syncEvery)
	if err := syncer.wait(); err != nil || p.tainted {
		t.Errorf("synced too early: %v, tainted %v", err, p.tainted)
	}
	syncer = p.followSync(t.Context(), 1)
	syncer.grow(syncEvery + 1)
	if err := syncer.wait(); !errors.Is(err, os.ErrClosed) || !p.tainted {
		t.Errorf("%v, tainted %v", err, p.tainted)
	}
}
