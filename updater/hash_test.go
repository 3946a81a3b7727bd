package updater

import (
	"context"
	"errors"
	"io"
	"testing"
)

type readerAt func(p []byte, at int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// TestHashFails: a file that cannot be read is an error, and the hash ends with its
// context, however far the file is.
func TestHashFails(t *testing.T) {
	wanted := digests{sha256Name: ""}
	broken := newHashes(wanted).follow(t.Context(), readerAt(func([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF }))
	broken.grow(1)
	if err := broken.wait(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	endless := newHashes(wanted).follow(ctx, readerAt(func(p []byte, _ int64) (int, error) { cancel(); return len(p), nil }))
	endless.grow(1 << 62)
	if err := endless.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("the hash outlasts its context: %v", err)
	}
}
