package updater

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestSyncerTells: a failure of the disk is told, as the next sync would not
// tell it again.
func TestSyncerTells(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	p := &partial{file: file}
	transfer := &fileDownload{partial: p, syncer: startSyncer(file)}
	for !transfer.syncer.begin() {
		runtime.Gosched()
	}
	if err := transfer.syncStarted(); !errors.Is(err, os.ErrClosed) || !p.tainted {
		t.Errorf("%v, doubtful %v", err, p.tainted)
	}
}
