package updater

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestPartialChangesHands: whoever opens a partial file while another gives it
// its path never gets hold of what is at the path.
func TestPartialChangesHands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 2000 {
				p, err := openPartial(path)
				if errors.Is(err, ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				opened, err := p.file.Stat()
				if err != nil {
					t.Error(err)
				}
				if placed, err := os.Lstat(path); err == nil && os.SameFile(opened, placed) {
					t.Error("what is at the path is open")
				}
				if err := p.commit(metadata{}, false); err != nil {
					t.Error(err)
				}
				p.close()
			}
		})
	}
	running.Wait()
}

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
