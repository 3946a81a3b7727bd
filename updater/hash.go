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

	"github.com/carddata/carddata-go/internal/transport"
)

const sha256Name = "sha-256"

// algorithms are those of digests, by their names in RFC 9530.
var algorithms = map[string]func() hash.Hash{sha256Name: sha256.New, "sha-512": sha512.New}

// digests are hashes of one content in hexadecimal, by algorithm.
type digests map[string]string

// parseDigests reads a digest field (RFC 9530), such as
// sha-256=:base64:, sha-512=:base64:. What is malformed, or of another algorithm, is
// as if it was not there.
func parseDigests(h http.Header, field string) digests {
	d := digests{}
	for member := range strings.SplitSeq(strings.Join(h.Values(field), ","), ",") {
		algorithm, value, _ := strings.Cut(strings.TrimSpace(member), "=")
		value, opened := strings.CutPrefix(value, ":")
		encoded, _, closed := strings.Cut(value, ":")
		sum, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
		if known := algorithms[algorithm]; known != nil && opened && closed && err == nil && len(sum) == known().Size() {
			d[algorithm] = hex.EncodeToString(sum)
		}
	}
	return d
}

// differ tells whether a hash that both have is not the same.
func (d digests) differ(o digests) bool {
	for algorithm, sum := range d {
		if other, both := o[algorithm]; both && other != sum {
			return true
		}
	}
	return false
}

// hashes compute the digests that are wanted.
type hashes map[string]hash.Hash

func newHashes(wanted ...digests) hashes {
	h := hashes{}
	for _, d := range wanted {
		for algorithm := range d {
			if known := algorithms[algorithm]; known != nil {
				h[algorithm] = known()
			}
		}
	}
	return h
}

func (h hashes) write(p []byte) {
	for _, hash := range h {
		hash.Write(p)
	}
}

func (h hashes) sums() digests {
	d := digests{}
	for algorithm, hash := range h {
		d[algorithm] = hex.EncodeToString(hash.Sum(nil))
	}
	return d
}

// follow hashes a file while it grows. It reads what was written, so that content of
// an earlier call is no special case.
func (h hashes) follow(ctx context.Context, file io.ReaderAt) *follower {
	pos := int64(0)
	return follow(func(to int64) error {
		piece := pieces.Get().(*[pieceSize]byte)
		defer pieces.Put(piece)
		for len(h) > 0 && pos < to {
			if ctx.Err() != nil {
				return transport.Ended(ctx)
			}
			n, err := file.ReadAt(piece[:min(pieceSize, to-pos)], pos)
			h.write(piece[:n])
			pos += int64(n)
			if n == 0 {
				return fileError("the file cannot be read", err)
			}
		}
		return nil
	})
}
