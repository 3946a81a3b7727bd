package transport

import (
	"bytes"
	"io"
	"math"
	"sync"
)

// buffers hold answers until they are decoded.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const modest = 256 << 10 // bytes

// readBounded reads at most limit bytes, and fails beyond; limit 0 is none. A
// modest body goes into the buffer, with room for the announced length, but only
// for a modest one, as it is the other side's word.
func readBounded(body io.Reader, buffer *bytes.Buffer, limit, length int64) (data []byte, err error) {
	if limit <= 0 || limit == math.MaxInt64 { // one more is read, to see that it is there
		limit = math.MaxInt64 - 1
	}
	if 0 < length && length < modest {
		buffer.Grow(int(length) + bytes.MinRead)
	}
	bounded := &io.LimitedReader{R: body, N: min(modest, limit+1)}
	_, err = buffer.ReadFrom(bounded)
	if data = buffer.Bytes(); err == nil && len(data) == modest {
		bounded.N = limit + 1 - modest
		data, err = io.ReadAll(io.MultiReader(buffer, bounded))
	}
	if int64(len(data)) > limit {
		return data[:limit], ErrResponseTooLarge
	}
	return data, err
}
