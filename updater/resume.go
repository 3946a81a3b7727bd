package updater

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// Conditions of a download.
var (
	// ErrChanged: the service has replaced the version of the content that the download
	// began with. Discard what was read, and download again.
	ErrChanged = transport.NewCondition("changed", "content changed", true)
	// ErrNotResumable: the stream broke, and the rest cannot be fetched alone, because
	// the service sent no strong validator, or declines or ignores ranges. Download
	// again. DownloadFile has already done so, up to WithMaxRetries times.
	ErrNotResumable = transport.NewCondition("not_resumable", "not resumable", true)
	// ErrDigestMismatch: the content does not match the digest that the service sent.
	// Discard what was read, and download again. DownloadFile has already done so, up to
	// WithMaxRetries times.
	ErrDigestMismatch = transport.NewCondition("digest_mismatch", "digest mismatch", true)
)

const (
	operation = "download"
	route     = "/updater/inquiries/jobs/{jobId}/download"
	// maxWait is the longest Retry-After that a resume waits out, as a call does.
	maxWait = time.Minute
	// minProgress is what resumes have to bring within the resume timeout. A few
	// bytes with each connection are no progress, or a download would never end.
	minProgress = 64 << 10
	// From the sixth resume in a row on, each waits at least as long as minPause,
	// whatever the settings say, so that an outage is not met with a flood of requests.
	quickResumes = 5
	minPause     = time.Second
)

// A request is for the result of one job, whole or from an offset on. It is sent as
// often as it takes, and counts that for the whole call.
type request struct {
	client *Client
	opts   []Option
	path   string
	ids    func() []string // the caller's own in path

	attempts  int
	resumes   int    // of them, for the rest of a broken stream
	requestID string // of the last response
	settings  *transport.Settings
	waited    time.Duration // for a job that is not ready
}

func (c *Client) request(ctx context.Context, jobID string, wait *WaitOptions, opts []Option) (*request, error) {
	job, err := transport.Segment("job id", jobID)
	switch {
	case c == nil || c.core == nil:
		err = transport.Invalid("the client was not made by NewClient")
	case c.merchant() == "":
		err = transport.Invalid("the client has no merchant: make one for a merchant with ForMerchant")
	case ctx == nil:
		err = transport.Invalid("the context is nil")
	case err == nil:
		err = wait.check()
	}
	q := &request{client: c, opts: opts, path: "/updater/inquiries/jobs/" + job + "/download", ids: func() []string { return []string{jobID} }}
	if err != nil {
		return nil, q.failure(err)
	}
	return q, nil
}

func (q *request) failure(err error) *Error {
	return &Error{Operation: operation, RequestID: q.requestID, Attempts: q.attempts, Err: err}
}

// resource tells the results of one service, job and merchant from all others,
// without their names.
func (q *request) resource() string {
	address, merchant := sha256.Sum256([]byte(q.client.core.Address(q.path))), sha256.Sum256([]byte(q.client.merchant()))
	return fmt.Sprintf("%x", sha256.Sum256(append(address[:], merchant[:]...)))
}

// A want is which content to request.
type want struct {
	offset  int64   // of the first byte
	version version // of which it is to be the rest, unless it is the zero one
	unless  version // which the caller has, and does not want again
	retry   int     // how often in a row this was tried: each time after a longer wait
}

func (q *request) send(ctx context.Context, w want) transport.Result {
	ranged := w.version.Validator != ""
	condition, value := w.unless.condition()
	res := q.client.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodGet,
		Route:     route,
		Path:      q.path,
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
		Offset:      w.offset,
		Resume:      w.retry,
		Identifiers: q.ids,
	}, q.opts)
	q.attempts += res.Attempts
	q.requestID, q.settings = res.RequestID, cmp.Or(res.Settings, q.settings)
	return res
}

// open requests content. The resumer begins at 0 if the service no longer has the
// version of which w is the rest.
func (q *request) open(ctx context.Context, w want) (*resumer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	res := q.send(ctx, w)
	r := &resumer{
		ctx: ctx, cancel: cancel, request: q, version: w.version, offset: w.offset, stall: stall{offset: w.offset},
		header: func() http.Header { return res.Header },
	}
	if err := r.admit(&res, true); err != nil {
		cancel(nil)
		return nil, err
	}
	return r, nil
}

// A resumer reads one version of a result across connections that break. It is
// the only reader with a state of its own between the connection and the caller:
// Download adds its public counters, a file its writes.
type resumer struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	request   *request
	version   version
	sent      digests            // of a 200, for as long as it was not resumed
	hashes    hashes             // of what a Download has read; out of the reach of fmt, as they hold content
	header    func() http.Header // of the first response; a closure keeps it out of the reach of fmt
	unchanged bool               // the caller has the content
	framed    bool               // the end can be told from a broken connection
	offset    int64              // of the next byte
	err       error              // with which reading has ended
	overrun   bool               // more came than was announced, so that what came may be from elsewhere

	mu     sync.Mutex // of stream, as Close may come from any goroutine
	stream io.ReadCloser
	end    int64 // up to which offset the stream may go; -1: not known

	stall  stall
	status int
}

// A stall measures for how long resumes have brought next to nothing. The time
// between two Reads is the caller's, and does not count.
type stall struct {
	offset         int64         // where the last progress ended
	stalledResumes int           // since then
	spent          time.Duration // in Read, since the first of them
	since          time.Time     // up to which spent is counted
}

func (s *stall) count() {
	now := time.Now()
	if s.stalledResumes > 0 {
		s.spent += now.Sub(s.since)
	}
	s.since = now
}

// admit takes over the stream of a response: a 206 that is the part asked for, or
// a 200 if the content may begin with it.
func (r *resumer) admit(res *transport.Result, first bool) error {
	if res.Failure != nil {
		res.Failure.Attempts = r.request.attempts
		if res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			res.Failure.Err = transport.NewError("the content no longer has the part that was asked for", ErrChanged, res.Failure.Err)
		}
		if words := refusal(res); words != "" {
			res.Failure.Err = transport.NewError(words, res.Failure.Err)
		}
		return (*Error)(res.Failure)
	}
	r.status = res.StatusCode
	var err error
	switch {
	case res.StatusCode == http.StatusNotModified:
		r.unchanged, res.Stream = true, http.NoBody
	case res.StatusCode == http.StatusPartialContent:
		err = r.admitPart(res)
	case first:
		r.version, r.framed = newVersion(res), res.Framed
		r.sent = parseDigests(res.Header, "Content-Digest")
		r.offset, r.end = 0, res.Length
	case newVersion(res).isSame(r.version):
		err = transport.NewError("the service does not serve the rest of the content alone", ErrNotResumable)
	default:
		err = transport.NewError("the content has changed", ErrChanged)
	}
	if err != nil {
		res.Stream.Close()
		return r.failure(err)
	}
	r.mu.Lock()
	r.stream = res.Stream
	r.mu.Unlock()
	return nil
}

func (r *resumer) admitPart(res *transport.Result) error {
	first, last, total, ok := parseContentRange(res.Header)
	switch {
	case !ok || isMultipart(res.Header) || first != r.offset || res.Length >= 0 && res.Length != last-first+1:
		return transport.NewError("the response is not the part of the content that was asked for", transport.ErrBadResponse)
	case r.version.ETag != "" && res.Header.Get("ETag") == "":
		// RFC 9110 (15.3.7) has a part repeat the ETag, though not the Last-Modified.
		return transport.NewError("the response does not tell of which content it is a part", ErrChanged)
	case r.version.contradicts(res.Header) || r.version.Length >= 0 && r.version.Length != total:
		return transport.NewError("the content has changed", ErrChanged)
	}
	r.version.Length, r.framed = total, true
	r.end = last + 1
	return nil
}

// refusal names the option that accepts what a response was refused for.
func refusal(res *transport.Result) string {
	switch {
	case res.StatusCode/100 != 2 || res.Failure.Code != "":
	case contentEncoding(res.Header) != "":
		return "the content has an encoding that was not asked for; WithEncodedContent accepts it"
	case strings.Contains(strings.ToLower(res.Header.Get("Content-Type")), "html"):
		return "the content is served as HTML; WithHTMLContent accepts it"
	}
	return ""
}

// Read reads on, and resumes what broke. Its errors but io.EOF are [*Error]s.
func (r *resumer) Read(p []byte) (int, error) {
	r.stall.since = time.Now()
	defer r.stall.count()
	for r.err == nil {
		n, err := r.stream.Read(p)
		if r.end >= 0 && int64(n) > r.end-r.offset {
			n, r.overrun = int(r.end-r.offset), true
			r.err = r.failure(transport.NewError("the response is longer than announced", transport.ErrBadResponse))
		}
		r.offset += int64(n)
		if n > 0 {
			return n, nil
		}
		switch {
		case err == nil:
			return 0, r.err
		case err == io.EOF && r.version.Length < 0, r.offset == r.version.Length && (err == io.EOF || isBreak(err)):
			r.err = io.EOF
		case err == io.EOF:
			r.err = r.resume(transport.CutOff(io.ErrUnexpectedEOF))
		default:
			r.err = r.resume(err)
		}
	}
	if context.Cause(r.ctx) == os.ErrClosed {
		r.err = r.failure(transport.NewError("the download was closed", os.ErrClosed))
	}
	return 0, r.err
}

// resume requests the rest after a stream that ended with cause.
func (r *resumer) resume(cause error) error {
	for {
		r.closeStream()
		if err := r.giveUp(cause); err != nil {
			return err
		}
		r.stall.stalledResumes++
		r.request.resumes++
		r.sent = nil
		if r.stall.stalledResumes > quickResumes && transport.Sleep(r.ctx, minPause) != nil {
			return r.failure(transport.Ended(r.ctx))
		}
		res, hung := r.sendBounded(want{offset: r.offset, version: r.version, retry: r.stall.stalledResumes})
		if hung {
			if res.Stream != nil {
				res.Stream.Close()
			}
			return r.failure(transport.NewError("a resume hung", transport.ErrTimeout))
		}
		if r.isComplete(&res) {
			r.version.Length, r.framed = r.offset, true
			return io.EOF
		}
		err := r.admit(&res, false)
		if err == nil || res.Failure == nil || res.Failure.RetryAfter > maxWait || errors.Is(err, ErrBadResponse) {
			return err
		}
		cause = err
	}
}

// sendBounded ends a resume that hangs. All that a resume does has a timeout, except the
// caller's token source and limiter.
func (r *resumer) sendBounded(w want) (res transport.Result, hung bool) {
	if s := r.request.settings; s.ResumeTimeout > 0 && s.AttemptTimeout > 0 {
		attempt := min(s.AttemptTimeout, 24*time.Hour) + min(s.WaitMax, time.Hour) + maxWait*9/8 // a Retry-After, and its jitter
		longest := time.Duration(min(s.MaxRetries, 1000)+1) * attempt
		timer := time.AfterFunc(max(s.ResumeTimeout-r.stall.spent, longest), func() { r.cancel(transport.ErrTimeout) })
		defer func() { hung = !timer.Stop() }()
	}
	return r.request.send(r.ctx, w), false
}

// isComplete tells whether a content of unknown length that broke has no rest: the
// version, of which If-Range made sure, is as long as what was read.
func (r *resumer) isComplete(res *transport.Result) bool {
	return res.StatusCode == http.StatusRequestedRangeNotSatisfiable && r.version.Length < 0 && !r.version.contradicts(res.Header) &&
		res.Header.Get("Content-Range") == "bytes */"+strconv.FormatInt(r.offset, 10)
}

// giveUp returns the error with which reading ends after cause, or nil if it can
// go on.
func (r *resumer) giveUp(cause error) error {
	r.stall.count()
	if r.offset-r.stall.offset >= minProgress {
		r.stall = stall{offset: r.offset, since: r.stall.since}
	}
	// Of the call that was to resume. What ended the context may be the *Error of another.
	failed, isFailure := cause.(*Error)
	switch {
	case r.ctx.Err() != nil || !isBreak(cause):
	case r.version.Validator == "":
		cause = transport.NewError(cause.Error()+", and the service gave nothing to resume it by", ErrNotResumable, cause)
	case r.request.settings.MaxRetries == 0:
		cause = transport.NewError(cause.Error()+", and retries are turned off", cause)
	case r.request.settings.ResumeTimeout > 0 && r.stall.spent >= r.request.settings.ResumeTimeout:
		if !isFailure {
			cause = transport.NewError(fmt.Sprintf("%v, and resumes brought no progress for %v", cause, r.request.settings.ResumeTimeout), cause)
		}
	default:
		return nil
	}
	if isFailure {
		return failed
	}
	return r.failure(cause)
}

// isBreak tells what another try may mend. What a service does not support (501
// and 505) or a proxy forbids will be no different a moment later.
func isBreak(err error) bool {
	failed, ok := err.(*Error)
	if ok && (failed.StatusCode == http.StatusNotImplemented || failed.StatusCode == http.StatusHTTPVersionNotSupported) || errors.Is(err, ErrForbidden) {
		return false
	}
	return errors.Is(err, ErrBadResponse) || errors.Is(err, ErrNoResponse) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrServer) ||
		errors.Is(err, ErrRateLimited)
}

// isVerifiable tells whether a part cannot pass for the whole content.
func (r *resumer) isVerifiable() bool {
	return r.framed || len(r.sent) > 0 || len(r.version.Digests) > 0
}

// check compares all that was read with the digests that the service sent, and
// returns io.EOF if it is what they say.
func (r *resumer) check(sums digests) error {
	if !sums.differ(r.version.Digests) && !sums.differ(r.sent) {
		return io.EOF
	}
	r.err = r.failure(transport.NewError("the content does not match the digest that the service sent", ErrDigestMismatch, transport.ErrBadResponse))
	return r.err
}

func (r *resumer) failure(err error) error {
	failed := r.request.failure(err)
	failed.StatusCode = r.status
	return failed
}

// Close ends reading for good.
func (r *resumer) Close() error {
	r.cancel(os.ErrClosed)
	return r.closeStream()
}

func (r *resumer) closeStream() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream.Close()
}
