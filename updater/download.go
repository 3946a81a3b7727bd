package updater

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Download reads the result of a job as it arrives. It is an io.ReadCloser, and an
// io.WriterTo for io.Copy. You must close it. Any goroutine may call Close; call
// everything else from one goroutine at a time.
//
// Format and fields of the content are not documented. The content is highly sensitive
// card data: keep it out of logs, and store it only in private files, as
// [Client.DownloadFile] does.
type Download struct {
	// ContentType is the Content-Type of the response; "" if it has none. The content
	// type is not documented.
	ContentType string
	// ContentEncoding is the Content-Encoding of the content, which you must decode; ""
	// for none. It is always "" without [WithEncodedContent].
	ContentEncoding string
	// Length is the length of the content in bytes; -1 if the service did not announce
	// it.
	Length int64
	// Verified is true if io.EOF proves that the content is whole, because the service
	// sent its length, chunks or a digest. If it is false, content that was cut off
	// looks like the whole content.
	Verified bool
	// ETag identifies this version of the content, as the service sent it, with its
	// quotes; "" if there is none.
	ETag string
	// LastModified is the Last-Modified of this version of the content, as the service
	// sent it; "" if there is none.
	LastModified string
	// RequestID is the request id of the last response, to quote to the service's
	// support; "" if it has none.
	RequestID string
	// Attempts is the number of requests sent so far, retries and resumes included.
	Attempts int
	// Resumes is the number of requests so far for the rest of a broken stream.
	Resumes int

	resumer *resumer
}

// Header returns the header of the response that began the download, for example to
// read quotas or Deprecation. It is nil in a Download that you made yourself. It is
// never printed.
func (d *Download) Header() http.Header {
	if d.resumer == nil {
		return nil
	}
	return d.resumer.header()
}

// Read reads content, and waits up to WithAttemptTimeout for more. After the last byte it
// returns io.EOF.
//
// Read resumes a stream that broke or stalled, if the service sent a strong ETag, or a
// Last-Modified that is more than a second old, and does not decline ranges. Each resume
// waits as WithRetryWait says, and is retried like any call. Resumes end when
// WithResumeTimeout has passed without progress. WithMaxRetries(0) turns them off.
//
// Every error but io.EOF is an [*Error], and every later Read returns it again:
//   - [ErrChanged]: the service has a different version of the content
//   - [ErrNotResumable]: the stream broke, and the rest cannot be fetched alone
//   - [ErrDigestMismatch]: the content does not match the service's digest
//   - [ErrTimeout]: the content stalled, and resumes did not help
//   - [ErrBadResponse]: the content was cut off, or a response had the wrong part, and
//     resumes did not help
//   - [ErrResponseTooLarge]: the content exceeds WithMaxResponseBytes
//   - the context's error, or os.ErrClosed after Close
//   - the failure of the request for the rest
//
// Slow content is read for as long as the context allows. Bytes beyond Content-Length
// are not read. A chunked part that is longer than its Content-Range is an
// ErrBadResponse.
func (d *Download) Read(p []byte) (int, error) {
	if d.resumer == nil {
		return 0, &Error{Operation: operation, Err: transport.Invalid("the download was not made by Client.Download")}
	}
	n, err := d.resumer.Read(p)
	d.resumer.hashes.write(p[:n])
	if err == io.EOF {
		err = d.resumer.check(d.resumer.hashes.sums())
	}
	q := d.resumer.request
	d.Attempts, d.Resumes, d.RequestID = q.attempts, q.resumes, q.requestID
	return n, err
}

// WriteTo writes the rest of the content to w. Writes are buffered to 256 KiB. To
// forward data as it arrives, hide WriteTo: io.Copy(w, struct{ io.Reader }{d}). Content
// that arrived before an error is written first. The errors are those of Read and of w.
func (d *Download) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, fullReader{d}, make([]byte, pieceSize))
}

// pieceSize is where one write of a full piece outruns many small ones, and
// page caches still take it well.
const pieceSize = 256 << 10

// A fullReader reads full pieces, the last one excepted.
type fullReader struct{ io.Reader }

func (r fullReader) Read(piece []byte) (int, error) {
	n, err := io.ReadFull(r.Reader, piece)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Close ends the download and releases its connection. A Read that waits returns an
// error that matches os.ErrClosed. Any goroutine may call Close at any time, more than
// once.
func (d *Download) Close() error {
	if d.resumer == nil {
		return nil
	}
	return d.resumer.Close()
}

// Format prints the length, whatever the verb.
func (d Download) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("download of %d bytes", d.Length))
}

// LogValue logs the length and the request id.
func (d Download) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("length", d.Length), slog.String("request_id", transport.Loggable(d.RequestID)))
}

// Download opens the result of a job.
//
// Only a 200 is a result, and only if its body is not the documented error object. Every
// other response is an [*Error], with the code, message and details of the error object
// or of two similar shapes. The request asks for no content encoding. A response with one
// is refused unless [WithEncodedContent] is given, and an HTML response unless
// [WithHTMLContent] is.
//
// jobID is the {jobId} of the path. Its format is not documented; it is sent as one
// escaped path segment. If it is empty, "." or "..", or does not fit a segment, Download
// fails with [ErrInvalidArgument]. The response for a job that is not ready is not
// documented: see [Client.DownloadWhenReady].
//
// The request is retried as Retries in the package comment says, and the stream is
// resumed as [Download.Read] says. ctx ends both. The whole download has no other time
// limit; WithAttemptTimeout bounds the wait for the response and for each further part.
func (c *Client) Download(ctx context.Context, jobID string, opts ...Option) (*Download, error) {
	return c.download(ctx, jobID, &WaitOptions{}, opts)
}

func (c *Client) download(ctx context.Context, jobID string, o *WaitOptions, opts []Option) (*Download, error) {
	q, err := c.request(ctx, jobID, o, opts)
	if err != nil {
		return nil, err
	}
	r, err := o.wait(ctx, q, func() (*resumer, error) { return q.open(ctx, want{}) })
	if err != nil {
		return nil, err
	}
	r.hashes = newHashes(r.version.Digests, r.sent)
	return &Download{
		ContentType:  r.version.ContentType,
		Length:       r.version.Length,
		Verified:     r.isVerifiable(),
		ETag:         r.version.ETag,
		LastModified: r.version.LastModified,

		ContentEncoding: r.version.ContentEncoding,
		RequestID:       q.requestID,
		Attempts:        q.attempts,
		resumer:         r,
	}, nil
}
