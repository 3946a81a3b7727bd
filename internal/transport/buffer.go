package transport

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"

	"github.com/carddata/carddata-go/internal/fault"
)

// buffers hold responses until they are decoded. Allocating a new one each time would take a
// sixth of the time of a lookup. Huge buffers are not pooled, because the pool would keep
// them for the life of the process.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooled = 256 << 10

// ReleaseBody takes back a buffer that KeepBody got.
func ReleaseBody(buffer *bytes.Buffer) {
	if buffer.Cap() <= maxPooled {
		buffers.Put(buffer)
	}
}

// readBounded reads at most limit bytes, and fails if there are more. A limit of 0 is none.
func readBounded(body io.ReadCloser, buffer *bytes.Buffer, limit, length int64) ([]byte, error) {
	limit = cmp.Or(limit, math.MaxInt64)
	if 0 < length && length <= min(limit, maxPooled) { // do not trust an announced length for a large allocation
		buffer.Grow(int(length) + bytes.MinRead)
	}
	// The buffer grows with the bytes that arrive. The limit counts decompressed bytes, so a
	// small compressed body cannot become a huge one.
	_, err := buffer.ReadFrom(http.MaxBytesReader(nil, body, limit))
	if _, exceeded := errors.AsType[*http.MaxBytesError](err); exceeded {
		err = fault.ErrOversize
	}
	return buffer.Bytes(), err
}
