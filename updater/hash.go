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

// algorithms maps the names of RFC 9530 to those of digests.
var algorithms = map[string]func() hash.Hash{sha256Name: sha256.New, "sha-512": sha512.New}

// digests holds the hashes of one content in hexadecimal, by algorithm.
type digests map[string]string

// parseDigests reads a digest field (RFC 9530), such as sha-256=:base64:, sha-512=:base64:.
// It ignores malformed entries and other algorithms.
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

// differ reports whether the two have different hashes for the same algorithm.
func (d digests) differ(o digests) bool {
	for algorithm, sum := range d {
		if other, both := o[algorithm]; both && other != sum {
			return true
		}
	}
	return false
}

// hashes computes the wanted digests.
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

// read hashes what an earlier call left. The piece is its buffer.
func (h hashes) read(ctx context.Context, part *io.SectionReader, piece []byte) error {
	for left := part.Size(); left > 0; {
		if ctx.Err() != nil {
			return transport.Ended(ctx)
		}
		n, err := part.Read(piece)
		if n == 0 {
			return fileError("the file cannot be read", err)
		}
		h.write(piece[:n])
		left -= int64(n)
	}
	return nil
}
