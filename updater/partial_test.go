package updater

import (
	"context"
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
				closeLocked(p.file)
			}
		})
	}
	running.Wait()
}

type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// TestHashOfAPart: the part of an earlier call may be huge. Hashing it ends with the context,
// and if the file cannot be read.
func TestHashOfAPart(t *testing.T) {
	var ctx context.Context
	var cancel context.CancelFunc
	for is, read := range map[error]readerAt{
		io.ErrUnexpectedEOF: func([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF },
		context.Canceled:    func(p []byte, _ int64) (int, error) { cancel(); return len(p), nil },
	} {
		ctx, cancel = context.WithCancel(t.Context())
		err := newHashes(digests{sha256Name: ""}).read(ctx, io.NewSectionReader(read, 0, 1<<62), make([]byte, 1))
		cancel()
		if !errors.Is(err, is) {
			t.Errorf("%v, want %v", err, is)
		}
	}
}
