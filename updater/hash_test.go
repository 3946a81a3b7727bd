package updater

import (
	"context"
	"errors"
	"io"
	"testing"
)

type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

func TestFollower(t *testing.T) {
	read := make(chan struct{})
	f := follow(readerAt(func(p []byte, at int64) (int, error) {
		<-read
		return 0, io.ErrUnexpectedEOF
	}))
	f.grow(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.sum(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the hash outlasts its context: %v", err)
	}
	close(read)
	if _, err := f.sum(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	f.stop()
}
