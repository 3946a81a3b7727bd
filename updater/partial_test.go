package updater

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestPartialChangesHands: a partial file that another download moves to its path, after it was opened
// and before it is locked, is not taken for a new one.
func TestPartialChangesHands(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it moves no open file
	}
	path := filepath.Join(t.TempDir(), "result")
	ended, err := openPartial(path, "job")
	if err != nil {
		t.Fatal(err)
	}
	late := &partial{path: path, name: ended.name, resource: "job"}
	file, err := late.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.commit(metadata{}, false); err != nil {
		t.Fatal(err)
	}
	ended.close()
	if err := late.take(file); !errors.Is(err, ErrBusy) {
		t.Errorf("what is at the path was taken: %v", err)
	}
	next, err := openPartial(path, "job")
	if err != nil {
		t.Fatal(err)
	}
	next.close()
}

// TestPartialsAtOnce: of the downloads to one path, each has the part for itself or is busy, whatever
// names come and go meanwhile.
func TestPartialsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	var running sync.WaitGroup
	var ended atomic.Int64
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
				if err := p.commit(metadata{}, false); err != nil {
					t.Error(err)
				}
				closeLocked(p.file)
				ended.Add(1)
			}
		})
	}
	if running.Wait(); ended.Load() == 0 {
		t.Error("all are busy")
	}
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
