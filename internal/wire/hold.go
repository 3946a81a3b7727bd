package wire

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/await"
)

// holdRoundTrip makes a round trip through code of the caller. It closes a response that
// arrives after the round trip was abandoned.
func holdRoundTrip(req *http.Request, roundTrip func(*http.Request) (*http.Response, error)) (resp *http.Response, left bool, err error) {
	var over atomic.Bool
	resp, left, err = await.Call(req.Context(), func() (*http.Response, error) {
		resp, err := roundTrip(req)
		if over.Load() && resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return resp, err
	})
	over.Store(left)
	return resp, left, err
}

// A heldBody is a response body that the caller's code made.
type heldBody struct {
	ctx    context.Context
	body   io.ReadCloser
	buffer *readBuffer // not the reader's buffer, because an abandoned Read may still write to it
	err    error
}

type readBuffer [32 << 10]byte

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

func holdBody(ctx context.Context, resp *http.Response) {
	if resp != nil && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body = &heldBody{ctx: ctx, body: resp.Body}
	}
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.buffer == nil {
		b.buffer = readBuffers.Get().(*readBuffer)
	}
	into := b.buffer[:min(len(p), len(b.buffer))]
	n, left, err := await.Call(b.ctx, func() (int, error) { return b.body.Read(into) })
	if left {
		b.err = err
		return 0, err
	}
	n = copy(p, into[:n])
	if err != nil {
		readBuffers.Put(b.buffer)
		b.buffer = nil
	}
	return n, err
}

// closeTimeout bounds the end of a stream, which has no deadline of its own.
const closeTimeout = 5 * time.Second

func (b *heldBody) Close() error {
	ctx, cancel := context.WithTimeout(b.ctx, closeTimeout)
	defer cancel()
	_, _, err := await.Call(ctx, func() (struct{}, error) { return struct{}{}, b.body.Close() })
	return err
}
