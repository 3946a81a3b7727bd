package updater

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/carddata/carddata-go/internal/transport"
)

// digests are hashes of one content in hexadecimal; "" is not known.
type digests struct {
	SHA256 string `json:"sha_256,omitempty"`
	SHA512 string `json:"sha_512,omitempty"`
}

// parseDigests reads a digest field (RFC 9530), such as
// sha-256=:base64:, sha-512=:base64:. What is malformed, or of another algorithm, is
// as if it was not there.
func parseDigests(h http.Header, field string) (d digests) {
	for member := range strings.SplitSeq(strings.Join(h.Values(field), ","), ",") {
		algorithm, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		value, opened := strings.CutPrefix(value, ":")
		encoded, _, closed := strings.Cut(value, ":")
		sum, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
		switch {
		case !opened || !closed || err != nil:
		case algorithm == "sha-256" && len(sum) == sha256.Size:
			d.SHA256 = hex.EncodeToString(sum)
		case algorithm == "sha-512" && len(sum) == sha512.Size:
			d.SHA512 = hex.EncodeToString(sum)
		}
	}
	return d
}

// differ tells whether a hash that both have is not the same.
func (d digests) differ(o digests) bool {
	return d.SHA256 != "" && o.SHA256 != "" && d.SHA256 != o.SHA256 || d.SHA512 != "" && o.SHA512 != "" && d.SHA512 != o.SHA512
}

// hashes compute the digests that are wanted.
type hashes struct{ sha256, sha512 hash.Hash }

// newHashes returns those of which one is wanted, or nil if none is.
func newHashes(wanted ...digests) *hashes {
	h := &hashes{}
	for _, d := range wanted {
		if d.SHA256 != "" && h.sha256 == nil {
			h.sha256 = sha256.New()
		}
		if d.SHA512 != "" && h.sha512 == nil {
			h.sha512 = sha512.New()
		}
	}
	if *h == (hashes{}) {
		return nil
	}
	return h
}

func (h *hashes) write(p []byte) {
	if h.sha256 != nil {
		h.sha256.Write(p)
	}
	if h.sha512 != nil {
		h.sha512.Write(p)
	}
}

func (h *hashes) sums() (d digests) {
	if h.sha256 != nil {
		d.SHA256 = hex.EncodeToString(h.sha256.Sum(nil))
	}
	if h.sha512 != nil {
		d.SHA512 = hex.EncodeToString(h.sha512.Sum(nil))
	}
	return d
}

// A hasher hashes a file while it grows, in a goroutine of its own. It reads what
// was written, so that content of an earlier call is no special case.
type hasher struct {
	to    chan int64 // how far the file is; the latest alone counts
	quit  chan struct{}
	ended chan struct{}
	sums  digests
	err   error

	complete func() // there is no more to hash
}

const hashPieceSize = 64 << 10

var hashPieces = sync.Pool{New: func() any { return new([hashPieceSize]byte) }}

func startHasher(file io.ReaderAt, h *hashes) *hasher {
	f := &hasher{to: make(chan int64, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	f.complete = sync.OnceFunc(func() { close(f.to) })
	go func() {
		defer close(f.ended)
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
				h.write(piece[:n])
				pos += int64(n)
				if n == 0 {
					f.err = err
				}
			}
		}
		f.sums = h.sums()
	}()
	return f
}

// grow is not called by two goroutines at once.
func (f *hasher) grow(to int64) {
	select {
	case <-f.to:
	default:
	}
	f.to <- to
}

// finish waits for the hashes of all that the file has grown to.
func (f *hasher) finish(ctx context.Context) (digests, error) {
	f.complete()
	select {
	case <-f.ended:
	case <-ctx.Done():
		return digests{}, transport.Ended(ctx)
	}
	if f.err != nil {
		return digests{}, fileError("the file cannot be read", f.err)
	}
	return f.sums, nil
}

// stop ends the goroutine.
func (f *hasher) stop() {
	close(f.quit)
	f.complete()
	<-f.ended
}
