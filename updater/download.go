package updater

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Download is the content of a job's result, read as it arrives: an
// io.ReadCloser. It must be closed, and is used by one goroutine at a time.
//
// Format and fields of the content are not documented. It is card data of the
// most sensitive kind: keep it out of logs, and store it only in private files.
type Download struct {
	// ContentType is what the service calls the content; "" if it does not.
	ContentType string
	// Length is the content's length in bytes, or -1 if the service did not
	// announce it. If it did, a shorter content ends with an error and never with
	// io.EOF. If it did not, over HTTP/1 without chunks, an end that came too early
	// cannot be told from the true one.
	Length int64
	// ETag and LastModified identify this version of the content, if given.
	ETag         string
	LastModified string
	// RequestID is to quote to the service's support; "" if it gave none.
	RequestID string
	// Attempts is how many requests it took.
	Attempts int

	stream io.ReadCloser
}

// Read reads content, and waits for it no longer than WithAttemptTimeout. After
// the last byte it returns io.EOF; any other end is an [*Error]: [ErrTimeout]
// when the content stalled, [ErrBadResponse] when it was cut off,
// [ErrResponseTooLarge] beyond WithMaxResponseBytes, or the context's error.
func (d *Download) Read(p []byte) (int, error) {
	if d.stream == nil {
		return 0, &Error{Operation: operation, Err: transport.Invalid("the download was not made by Client.Download")}
	}
	n, err := d.stream.Read(p)
	if err != nil && err != io.EOF {
		err = &Error{
			Operation: operation, StatusCode: http.StatusOK, RequestID: d.RequestID, Attempts: d.Attempts, Err: err,
		}
	}
	return n, err
}

// Close ends the download. What was not read is not fetched any more.
func (d *Download) Close() error {
	if d.stream == nil {
		return nil
	}
	return d.stream.Close()
}

// Format prints type and length, whatever the verb.
func (d Download) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("download of %d bytes", d.Length))
}

// LogValue logs the length and the request id.
func (d Download) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("length", d.Length), slog.String("request_id", transport.Printable(d.RequestID)))
}

const operation = "download"

// Download opens the result of a job (interface, endpoint 3). Only a 200 is a
// result; everything else is an [*Error], with the Code, Message and Details of
// the documented error object, or of two other shapes that occur in the field.
//
// jobID is the {jobId} of the path; it travels as one escaped segment, and is
// refused when it cannot. What a job that is not ready answers is not documented.
//
// Opening is repeated as described in the package's section on retries; once it
// succeeded, reading is not. ctx governs opening and reading: there is no other
// bound on the whole, as a long download is no fault, but the wait for the
// answer, and for each further part of it, is bounded by WithAttemptTimeout.
func (c *Client) Download(ctx context.Context, jobID string, opts ...Option) (*Download, error) {
	fail := func(err error) (*Download, error) {
		return nil, &Error{Operation: operation, Err: err}
	}
	if c == nil || c.core == nil {
		return fail(transport.Invalid("the client was not made by NewClient"))
	}
	job, err := transport.Segment("job id", jobID)
	if err != nil {
		return fail(err)
	}
	result := c.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodGet,
		Route:     "/updater/inquiries/jobs/{jobId}/download",
		Path:      "/updater/inquiries/jobs/" + job + "/download",
		Headers: func(h http.Header) {
			h.Set("x-merchant-id", c.merchant())
			h["Accept-Encoding"] = []string{"identity"}
		},
		Stream: true,
	}, opts)
	if result.Failure != nil {
		return nil, (*Error)(result.Failure)
	}
	return &Download{
		ContentType:  result.Header.Get("Content-Type"),
		Length:       result.Length,
		ETag:         result.Header.Get("ETag"),
		LastModified: result.Header.Get("Last-Modified"),
		RequestID:    result.RequestID,
		Attempts:     result.Attempts,
		stream:       result.Stream,
	}, nil
}
