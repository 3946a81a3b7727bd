package updater

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

const (
	// resumeFor is how long one Read resumes without a byte.
	resumeFor = 5 * time.Minute
	// From the sixth resume in a row, each waits at least minPause, even if the settings say
	// zero: an outage must not meet a flood of requests. minProgress ends the row.
	quickResumes = 5
	minPause     = time.Second
	minProgress  = 64 << 10
)

// open requests content. The resumer begins at 0 if the service no longer has the version
// that w is part of.
func (q *request) open(ctx context.Context, w want) (*resumer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	res := q.send(ctx, w)
	r := &resumer{
		ctx: ctx, cancel: cancel, request: q, version: w.version, offset: w.offset, progress: w.offset,
		header: func() http.Header { return res.Header },
	}
	if err := r.admit(&res, true); err != nil {
		cancel(nil)
		return nil, err
	}
	return r, nil
}

// A resumer reads one version of the content across broken connections. Only it keeps state
// between the connection and the caller: Download adds public counters, and a file its
// writes.
type resumer struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	request   *request
	version   version
	header    func() http.Header // of the first response; a closure, which hides it from fmt
	unchanged bool               // the caller has the content already
	framed    bool               // a part cannot look like the whole content
	offset    int64              // of the next byte
	err       error              // the error that ended reading

	mu     sync.Mutex // guards stream, because Close may come from any goroutine
	stream io.ReadCloser
	end    int64 // maximum offset of the stream; -1: not known

	progress int64 // the offset at which the last progress ended
	row      int   // number of resumes since then
	status   int
}

// admit takes over the stream of a response: a 206 with the requested part, or a 200 from
// which the content may begin.
func (r *resumer) admit(res *transport.Result, first bool) error {
	if res.Failure != nil {
		res.Failure.Attempts = r.request.attempts
		if res.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			res.Failure.Err = fault.NewError("the content no longer has the part that was asked for", ErrChanged, res.Failure.Err)
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
		r.offset, r.end = 0, res.Length
	case validator(res.Header) == r.version.Validator:
		err = fault.NewError("the service does not serve the rest of the content alone", ErrChanged)
	default:
		err = fault.NewError("the content has changed", ErrChanged)
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

// admitPart takes over a part that repeats the validator that it was asked by.
func (r *resumer) admitPart(res *transport.Result) error {
	first, last, total, ok := parseContentRange(res.Header)
	if total < 0 {
		total = r.version.Length // without a length, the end cannot be recognised
	}
	switch {
	case !ok || last >= total || first != r.offset || res.Length >= 0 && res.Length != last-first+1:
		return fault.NewError("the response is not the part of the content that was asked for", ErrChanged, fault.ErrBadResponse)
	case r.version.contradicts(res.Header) || r.version.Length >= 0 && r.version.Length != total:
		return fault.NewError("the content has changed", ErrChanged)
	case !r.version.isRepeatedBy(res.Header):
		return fault.NewError("the response does not say which content it is a part of", ErrChanged)
	}
	r.version.Length, r.framed = total, true
	r.end = last + 1
	return nil
}

// Read reads on, and resumes broken streams. Its errors are [*Error]s, except io.EOF.
func (r *resumer) Read(p []byte) (int, error) {
	until := time.Now().Add(resumeFor)
	for r.err == nil {
		n, err := r.stream.Read(p)
		if r.end >= 0 && int64(n) > r.end-r.offset {
			// It may have begun elsewhere, so what came of it cannot be continued.
			n = int(r.end - r.offset)
			r.err = r.failure(fault.NewError("the response is longer than announced", ErrChanged, fault.ErrBadResponse))
		}
		r.offset += int64(n)
		if n > 0 {
			return n, nil
		}
		switch {
		case err == nil:
			return 0, r.err
		case err == io.EOF && r.version.Length < 0, r.offset == r.version.Length && (err == io.EOF || classify(err) == goOn):
			r.err = io.EOF
		case err == io.EOF:
			r.err = r.resume(transport.CutOff(io.ErrUnexpectedEOF), until)
		default:
			r.err = r.resume(err, until)
		}
	}
	if context.Cause(r.ctx) == os.ErrClosed {
		r.err = r.failure(fault.NewError("the download was closed", os.ErrClosed))
	}
	return 0, r.err
}

// resume requests the rest after a stream that ended with cause.
func (r *resumer) resume(cause error, until time.Time) error {
	for {
		r.closeStream()
		if err := r.giveUp(cause, until); err != nil {
			return err
		}
		if r.offset-r.progress >= minProgress {
			r.progress, r.row = r.offset, 0
		}
		r.row++
		r.request.resumes++
		if r.row > quickResumes && await.Sleep(r.ctx, minPause, nil) != nil {
			return r.failure(fault.Ended(r.ctx))
		}
		res := r.request.send(r.ctx, want{offset: r.offset, version: r.version, retry: r.row})
		if cause = r.admit(&res, false); cause == nil {
			return nil
		}
	}
}

// giveUp returns the error that ends reading after cause, or nil if reading can go on.
func (r *resumer) giveUp(cause error, until time.Time) error {
	// Use the resume's own error. The context may have ended with the *Error of another call.
	failed, isFailure := cause.(*Error)
	switch {
	case r.ctx.Err() != nil || classify(cause) != goOn:
	case r.version.Validator == "":
		cause = fault.NewError(cause.Error()+", and the service gave nothing to resume it by", ErrChanged, cause)
	case r.request.settings.MaxRetries == 0:
		cause = fault.NewError(cause.Error()+", and retries are turned off", cause)
	case !time.Now().Before(until):
		if !isFailure {
			cause = fault.NewError(fmt.Sprintf("%v, and resumes brought no byte for %v", cause, resumeFor), cause)
		}
	default:
		return nil
	}
	if isFailure {
		return failed
	}
	return r.failure(cause)
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
