package updater

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Download reads the result of a job as it arrives. Close it after use. Any goroutine may call Close;
// call everything else from one goroutine at a time.
//
// The content is card data: keep it out of logs, and store it only in private files.
type Download struct {
	ContentType, ETag, LastModified string // headers of the first response

	// Length is the length of the content in bytes; -1 if it is not known.
	Length int64
	// Verified is true if the service marks the end of the content, by its length or chunks. Otherwise
	// content that was cut off ends in io.EOF, too. Some frameworks mark the end also after an error of
	// their own: if the service sends a digest, compare it.
	Verified bool

	RequestID string // of the last response, for the service's support
	Attempts  int    // requests so far
	Resumes   int    // those for the rest of a broken stream

	resumer *resumer
}

// Header returns the header of the first response. Do not change it.
func (d *Download) Header() http.Header {
	if d.resumer == nil {
		return nil
	}
	return d.resumer.header()
}

// Read reads content, and waits up to WithAttemptTimeout for more. After the last byte it returns io.EOF.
//
// Read resumes a stream that broke or stalled: a request with Range and If-Range fetches the rest. For
// this the service must serve ranges, and send a strong ETag, or a Last-Modified at least a second old (a
// minute, if it sends no Date). Each resume is retried like any call. From the sixth in a row without
// progress, it waits at least a second. Read gives up after five minutes without a byte: for less, give
// ctx a deadline.
//
// Every error but io.EOF is an [*Error], and later Reads return it again: [ErrChanged],
// [ErrTimeout] (the content stalled), [ErrBadResponse] (it was cut off, or a part was wrong), the failure of the request for the rest, or the context's error. After Close it is os.ErrClosed.
func (d *Download) Read(p []byte) (int, error) {
	if d.resumer == nil {
		return 0, &Error{Operation: operation, Err: fault.Invalid("the download was not made by Client.Download")}
	}
	n, err := d.resumer.Read(p)
	q := d.resumer.request
	d.Attempts, d.Resumes, d.RequestID = q.attempts, q.resumes, q.requestID
	return n, err
}

// WriteTo writes the rest of the content to w, in pieces of 256 KiB. io.Copy calls it. To forward data as
// it arrives, use io.Copy(w, struct{ io.Reader }{d}).
func (d *Download) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, fullReader{d}, make([]byte, pieceSize))
}

// pieceSize: one write of a full piece is faster than many small ones.
const pieceSize = 256 << 10

// A fullReader reads full pieces, except for the last one.
type fullReader struct{ io.Reader }

func (r fullReader) Read(piece []byte) (int, error) {
	n, err := io.ReadFull(r.Reader, piece)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Close ends the download and its connection. A Read that waits fails with os.ErrClosed.
func (d *Download) Close() error {
	if d.resumer == nil {
		return nil
	}
	return d.resumer.Close()
}

// Format prints the length, under any verb.
func (d Download) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, fmt.Sprintf("download of %d bytes", d.Length))
}

// LogValue logs the length and the request id.
func (d Download) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("length", d.Length), slog.String("request_id", fault.Loggable(d.RequestID)))
}

// Download opens the result of a job.
//
// Only a 200 is a result. It fails, too, if its body is an HTML page, is encoded, or is the documented
// error object alone, with "error" before any list or object. All other content passes, also if it is
// empty, and nothing is decoded: [FileOptions.Check] may refuse more.
//
// jobID is sent as one escaped path segment. An empty one, and "." or ".." between slashes, are refused
// with [ErrInvalidArgument].
func (c *Client) Download(ctx context.Context, jobID string, opts ...CallOption) (*Download, error) {
	q, err := c.request(ctx, jobID, opts)
	if err != nil {
		return nil, err
	}
	r, err := q.await(ctx, func() (*resumer, error) { return q.open(ctx, want{}) })
	if err != nil {
		return nil, err
	}
	return &Download{
		ContentType:  r.version.ContentType,
		Length:       r.version.Length,
		Verified:     r.framed,
		ETag:         r.version.ETag,
		LastModified: r.version.LastModified,
		RequestID:    q.requestID,
		Attempts:     q.attempts,
		resumer:      r,
	}, nil
}

const (
	operation = "download"
	route     = "/updater/inquiries/jobs/{jobId}/download"
)

// A request is for the result of one job, whole or from an offset. It may be sent several
// times, and counts for the whole call.
type request struct {
	client   *Client
	settings *transport.Settings
	path     string
	ids      func() []string // the caller's ids in path

	attempts  int
	resumes   int       // those for the rest of a broken stream
	requestID string    // of the last response
	began     time.Time // of the call
}

func (c *Client) request(ctx context.Context, jobID string, opts []CallOption) (*request, error) {
	job, err := transport.Segment("job id", jobID)
	switch {
	case c == nil || c.core == nil:
		err = fault.Invalid("the client was not made by NewClient")
	case c.merchant() == "":
		err = fault.Invalid("the client has no merchant: make one for a merchant with ForMerchant")
	case ctx == nil:
		err = fault.Invalid("the context is nil")
	}
	q := &request{client: c, path: "/updater/inquiries/jobs/" + job + "/download", ids: func() []string { return []string{jobID} }, began: time.Now()}
	if err == nil {
		q.settings, err = c.core.Settings(changes(opts))
	}
	if err != nil {
		return nil, q.failure(err)
	}
	return q, nil
}

func (q *request) failure(err error) *Error {
	return &Error{Operation: operation, RequestID: q.requestID, Attempts: q.attempts, Err: err}
}

// resource identifies the result of one service, job and merchant by a hash, without their
// names.
func (q *request) resource() string {
	address, merchant := sha256.Sum256([]byte(q.client.core.Address(q.path))), sha256.Sum256([]byte(q.client.merchant()))
	return fmt.Sprintf("%x", sha256.Sum256(append(address[:], merchant[:]...)))
}

// A want says which content to request.
type want struct {
	offset  int64   // of the first byte
	version version // ask for the rest of this version; zero: for the whole
	unless  version // the caller has this version, and does not want it again
	retry   int     // number of consecutive tries; the wait grows with each
}

func (q *request) send(ctx context.Context, w want) transport.Result {
	ranged := w.version.Validator != ""
	condition, value := w.unless.condition()
	res := q.client.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodGet,
		Route:     route,
		Path:      q.path,
		Account:   q.client.merchant(),
		Headers: func(h http.Header) {
			h.Set("x-merchant-id", q.client.merchant())
			h["Accept-Encoding"] = []string{"identity"}
			if ranged {
				h["Range"] = []string{"bytes=" + strconv.FormatInt(w.offset, 10) + "-"}
				h["If-Range"] = []string{w.version.Validator}
			}
			if value != "" {
				h[condition] = []string{value}
			}
		},
		Stream:      true,
		Partial:     ranged,
		Conditional: value != "",
		Resume:      w.retry,
		Identifiers: q.ids,
	}, q.settings)
	q.attempts += res.Attempts
	q.requestID = res.RequestID
	return res
}

const defaultInterval = 30 * time.Second

// await opens the content, and asks again until the job is ready, as WithWait says.
func (q *request) await(ctx context.Context, open func() (*resumer, error)) (*resumer, error) {
	for waited := false; ; waited = true {
		r, err := open()
		failed, ok := err.(*Error)
		if !ok || ctx.Err() != nil || q.settings.WaitLimit == 0 {
			return r, err
		}
		// Wait out an outage only after the job is known to exist.
		if !errors.Is(failed, ErrNotReady) && !(waited && failed.Retryable()) {
			return nil, failed
		}
		pause := min(max(cmp.Or(q.settings.WaitInterval, defaultInterval), failed.RetryAfter), math.MaxInt64/2) // for the sum
		pause += q.client.core.Jitter(ctx, pause/5+1)
		end := q.began.Add(q.settings.WaitLimit)
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
			end = deadline
		}
		if time.Until(end) <= pause {
			return nil, failed
		}
		if await.Sleep(ctx, pause, nil) != nil {
			ended, last := fault.Ended(ctx), *failed
			last.Err = fault.NewError(ended.Error(), ended, failed)
			return nil, &last
		}
	}
}
