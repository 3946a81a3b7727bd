package updater

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Download is the content of a job's result, read as it arrives: an
// io.ReadCloser, and an io.WriterTo for io.Copy. It must be closed, and but for
// Close is used by one goroutine at a time.
//
// Format and fields of the content are not documented. It is card data of the
// most sensitive kind: keep it out of logs, and store it only in private files,
// as [Client.DownloadFile] does.
type Download struct {
	// ContentType is what the service calls the content; "" if it does not.
	ContentType string
	// Length is the content's length in bytes, or -1 if the service did not
	// announce it.
	Length int64
	// Verified tells that the service marks the end of the content, by its length
	// or in chunks: io.EOF then comes after the whole content and never before. If
	// false, an end that came too early cannot be told from the true one.
	Verified bool
	// ETag and LastModified identify this version of the content, if given.
	ETag         string
	LastModified string
	// RequestID is to quote to the service's support; "" if it gave none.
	RequestID string
	// Attempts is how many requests it took so far.
	Attempts int
	// Resumes is how many of the requests asked for the rest of a broken stream.
	Resumes int

	content *content
	end     context.CancelCauseFunc // of the content's context
}

// Read reads content, and waits for it no longer than WithAttemptTimeout. After
// the last byte it returns io.EOF.
//
// A stream that broke or stalled is resumed, unnoticed, if the service gave a
// strong ETag, or a Last-Modified that is more than a second old, and does not
// decline ranges: after a wait as WithRetryWait sets it, with the repetitions of
// any call, and up to 5 times in a row without a further byte.
//
// Content of two versions is not mixed: each part has to repeat the ETag, as RFC
// 9110 (15.3.7) demands, and to agree in length. A part need not repeat a
// Last-Modified, so that where that is all there is, it is the service which has to
// heed If-Range: one that ignores it, and serves another content of the same
// length, is not noticed.
//
// Any end but io.EOF is an [*Error]: [ErrChanged] when the rest is no longer to be
// had, [ErrTimeout] when the content stalled, [ErrBadResponse] when it was cut off
// or another part came than was asked for, [ErrResponseTooLarge] beyond
// WithMaxResponseBytes, the context's error, os.ErrClosed after Close, or the failure
// of the call that was to resume it. A content that merely trickles is read for as
// long as the context allows. What comes after a Content-Length is not read; a part
// in chunks that is longer than its Content-Range is an ErrBadResponse.
func (d *Download) Read(p []byte) (int, error) {
	if d.content == nil {
		return 0, &Error{Operation: operation, Err: transport.Invalid("the download was not made by Client.Download")}
	}
	n, err := d.content.Read(p)
	d.Attempts, d.Resumes, d.RequestID = d.content.attempts, d.content.resumes, d.content.requestID
	if n == 0 && context.Cause(d.content.ctx) == os.ErrClosed {
		err = d.content.failure(transport.Reason("the download was closed", os.ErrClosed))
	}
	return n, err
}

// WriteTo writes what is left of the content to w, in pieces of 256 KiB, of which
// each is written when it is full, and the last one also before an error is
// returned. The errors are those of Read, which are [*Error]s, and of w. Whoever
// watches w sees nothing of a piece before that: to pass on what comes as it comes,
// give io.Copy a struct{ io.Reader } of the download, which hides WriteTo.
func (d *Download) WriteTo(w io.Writer) (int64, error) {
	written := int64(0)
	err := fill(d, make([]byte, pieceSize), func(piece []byte) error {
		n, err := w.Write(piece)
		written += int64(n)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		return err
	})
	return written, err
}

// pieceSize is where one write of a full piece outruns many small ones, and
// page caches still take it well.
const pieceSize = 256 << 10

// fill hands the content of r over in full pieces, the last one excepted.
func fill(r io.Reader, piece []byte, write func(piece []byte) error) (err error) {
	for err == nil {
		var n int
		for n < len(piece) && err == nil {
			var m int
			m, err = r.Read(piece[n:])
			n += m
		}
		if n == 0 {
			break
		}
		if failed := write(piece[:n]); failed != nil {
			return failed
		}
	}
	if err == io.EOF {
		err = nil
	}
	return err
}

// Close ends the download for good. What was not read is not fetched any more, and
// Read returns an error of which errors.Is finds os.ErrClosed. It may be called at
// any time by any goroutine, and ends a Read that waits.
func (d *Download) Close() error {
	if d.content == nil {
		return nil
	}
	d.end(os.ErrClosed)
	return d.content.Close()
}

// Format prints the length, whatever the verb.
func (d Download) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("download of %d bytes", d.Length))
}

// LogValue logs the length and the request id.
func (d Download) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("length", d.Length), slog.String("request_id", transport.Printable(d.RequestID)))
}

// Download opens the result of a job (interface, endpoint 3). Only a 200 is a
// result; everything else is an [*Error], with the Code, Message and Details of
// the documented error object, or of two other shapes that occur in the field.
// The content is asked for without a content encoding, and refused with one.
//
// jobID is the {jobId} of the path; it travels as one escaped segment, and is
// refused when it cannot. What a job that is not ready answers is not documented:
// see [Client.DownloadWhenReady].
//
// Opening is repeated as described in the package's section on retries; reading is
// resumed as described at [Download.Read]. ctx governs both: there is no other
// bound on the whole, as a long download is no fault, but the wait for the
// answer, and for each further part of it, is bounded by WithAttemptTimeout.
func (c *Client) Download(ctx context.Context, jobID string, opts ...Option) (*Download, error) {
	s, err := c.source(ctx, jobID, opts)
	if err != nil {
		return nil, &Error{Operation: operation, Err: err}
	}
	return newDownload(ctx, func(ctx context.Context) (*content, error) { return s.open(ctx, 0, -1, version{}) })
}

func newDownload(ctx context.Context, open func(context.Context) (*content, error)) (*Download, error) {
	ctx, end := context.WithCancelCause(ctx)
	c, err := open(ctx)
	if err != nil {
		end(nil)
		return nil, err
	}
	return &Download{
		ContentType:  c.version.ContentType,
		Length:       c.version.Length,
		Verified:     c.framed,
		ETag:         c.version.ETag,
		LastModified: c.version.LastModified,
		RequestID:    c.requestID,
		Attempts:     c.attempts,
		content:      c,
		end:          end,
	}, nil
}
