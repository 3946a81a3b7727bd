package updater

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
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
				if err := p.commit(0, "resource", nil); err != nil {
					t.Error(err)
				}
				p.close()
			}
		})
	}
	running.Wait()
}

// TestFailedRename: a content that cannot take its path stays with its metadata, so
// that the next call goes on with it.
func TestFailedRename(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result")
	p, err := openPartial(path)
	if err != nil {
		t.Fatal(err)
	}
	v := version{Length: 2, ETag: `"v1"`, Validator: `"v1"`}
	_, errWrite := p.file.WriteAt([]byte("ab"), 0)
	errMeta := p.writeMetadata(p.metadataName(), metadata{Resource: "resource", Version: v})
	if err := errors.Join(errWrite, errMeta, os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := p.commit(2, "resource", nil); err == nil || !strings.Contains(err.Error(), "cannot take its path") {
		t.Errorf("a directory was replaced: %v", err)
	}
	p.discardOrKeep()
	p.close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if p, err = openPartial(path); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if got, from := p.resumePoint("resource"); !reflect.DeepEqual(got, v) || from != 1 {
		t.Errorf("%v from %d", got, from)
	}
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
