package updater

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestPartialChangesHands: a partial file that another download has just moved to its path is
// not taken for a new one.
func TestPartialChangesHands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				p, err := openPartial(path, "job")
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
				closeLocked(p.file)
			}
		})
	}
	running.Wait()
}

// TestHashOfAPart: the part of an earlier call may be huge. Hashing it ends with the context,
// and if the file cannot be read.
func TestHashOfAPart(t *testing.T) {
	p, err := openPartial(filepath.Join(t.TempDir(), "result"), "job")
	if err != nil {
		t.Fatal(err)
	}
	defer closeLocked(p.file)
	if err := p.read(t.Context(), sha256.New(), 1, make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("of an empty file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.read(ctx, sha256.New(), 1<<62, make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestPartialOfAnother: as soon as a file has its path, another download may begin. The one that has
// ended leaves the partial file of the other, which is still empty, alone.
func TestPartialOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	ended, err := openPartial(path, "job")
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.commit(metadata{}, false); err != nil {
		t.Fatal(err)
	}
	other, err := openPartial(path, "job")
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	ended.close()
	if _, err := os.Lstat(other.name); err != nil {
		t.Errorf("the partial file of another download was removed: %v", err)
	}
}
