package updater

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync"

	"github.com/carddata/carddata-go/internal/transport"
)

// A follower hashes a file while it grows, in a goroutine of its own. It reads
// what was written, so that content of an earlier call, and parts that came out of
// order, are no special cases.
type follower struct {
	to    chan int64 // how far the file is; the latest alone counts
	quit  chan struct{}
	ended chan struct{}
	hex   string
	err   error

	complete func() // there is no more to hash
}

const hashPieceSize = 64 << 10

var hashPieces = sync.Pool{New: func() any { return new([hashPieceSize]byte) }}

func follow(file io.ReaderAt) *follower {
	f := &follower{to: make(chan int64, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	f.complete = sync.OnceFunc(func() { close(f.to) })
	go func() {
		defer close(f.ended)
		hash := sha256.New()
		piece := hashPieces.Get().(*[hashPieceSize]byte)
		defer hashPieces.Put(piece)
		pos := int64(0)
		for to := range f.to {
			for pos < to && f.err == nil {
				select {
				case <-f.quit:
					return
				default:
				}
				n, err := file.ReadAt(piece[:min(hashPieceSize, to-pos)], pos)
				hash.Write(piece[:n])
				pos += int64(n)
				if n == 0 {
					f.err = err
				}
			}
		}
		f.hex = hex.EncodeToString(hash.Sum(nil))
	}()
	return f
}

// grow is not called by two goroutines at once.
func (f *follower) grow(to int64) {
	select {
	case <-f.to:
	default:
	}
	f.to <- to
}

// sum waits for the hash of all that the file has grown to.
func (f *follower) sum(ctx context.Context) (string, error) {
	f.complete()
	select {
	case <-f.ended:
	case <-ctx.Done():
		return "", transport.Ended(ctx)
	}
	if f.err != nil {
		return "", fileError("the file cannot be read", f.err)
	}
	return f.hex, nil
}

// stop ends the goroutine.
func (f *follower) stop() {
	close(f.quit)
	f.complete()
	<-f.ended
}
