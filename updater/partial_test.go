package updater

import (
	"errors"
	"io/fs"
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
				if err := p.commit(0); err != nil {
					t.Error(err)
				}
				p.close()
			}
		})
	}
	running.Wait()
}

// TestNoteGoesFirst: as soon as the partial file has its path, another download may
// use the names beside it, so that the note is gone before. A path that cannot be
// replaced shows it.
func TestNoteGoesFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result")
	p, err := openPartial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	_, errWrite := p.file.WriteAt([]byte("ab"), 0)
	errNote := p.writeNote("resource", version{Length: 2, ETag: `"v1"`, Validator: `"v1"`}, -1)
	if err := errors.Join(errWrite, errNote, os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := p.commit(2); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Lstat(filepath.Join(dir, p.noteName())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note: %v", err)
	}
	p.leave(true)
	if _, err := os.Lstat(filepath.Join(dir, p.name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part: %v", err)
	}
}
