package updater

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"

	"github.com/carddata/carddata-go/internal/transport"
)

// A source is a job's result, of which parts can be asked for. It keeps the
// caller's ids in closures, out of the reach of fmt.
type source struct {
	do       func(ctx context.Context, c *transport.Call) transport.Result
	headers  func(http.Header)
	path     func() string
	resource func() string
}

func (c *Client) source(ctx context.Context, jobID string, opts []Option) (*source, error) {
	if c == nil || c.core == nil {
		return nil, transport.Invalid("the client was not made by NewClient")
	}
	if ctx == nil {
		return nil, transport.Invalid("the context is nil")
	}
	job, err := transport.Segment("job id", jobID)
	if err != nil {
		return nil, err
	}
	path := "/updater/inquiries/jobs/" + job + "/download"
	return &source{
		do:      func(ctx context.Context, call *transport.Call) transport.Result { return c.core.Do(ctx, call, opts) },
		headers: func(h http.Header) { h.Set("x-merchant-id", c.merchant()) },
		path:    func() string { return path },
		resource: func() string {
			address, merchant := c.core.Fingerprint(path), sha256.Sum256([]byte(c.merchant()))
			return fmt.Sprintf("%x", sha256.Sum256(append(address[:], merchant[:]...)))
		},
	}, nil
}

// ask requests the content from an offset up to an end; -1 is its own end. A
// range of a known version is asked for on the condition that it still is the
// version.
func (s *source) ask(ctx context.Context, from, end int64, of version, resume int) transport.Result {
	ranged := from > 0 || end >= 0 || of.Validator != ""
	return s.do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodGet,
		Route:     "/updater/inquiries/jobs/{jobId}/download",
		Path:      s.path(),
		Headers: func(h http.Header) {
			s.headers(h)
			h["Accept-Encoding"] = []string{"identity"}
			if !ranged {
				return
			}
			span := "bytes=" + strconv.FormatInt(from, 10) + "-"
			if end >= 0 {
				span += strconv.FormatInt(end-1, 10)
			}
			h["Range"] = []string{span}
			if of.Validator != "" {
				h["If-Range"] = []string{of.Validator}
			}
		},
		Stream:  true,
		Partial: ranged,
		Offset:  from,
		Resume:  resume,
	})
}
