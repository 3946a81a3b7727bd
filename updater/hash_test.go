package updater

import (
	"context"
	"errors"
	"io"
	"testing"
)

type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

func TestHasher(t *testing.T) {
	read := make(chan struct{})
	f := startHasher(readerAt(func(p []byte, at int64) (int, error) {
		<-read
		return 0, io.ErrUnexpectedEOF
	}), newHashes(digests{SHA256: "wanted"}))
	f.grow(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the hash outlasts its context: %v", err)
	}
	close(read)
	if _, err := f.finish(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	f.stop()
}
