package updater

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrChanged: the service no longer serves the version of the content that the
// download began with, or cannot serve the rest of it alone. What was read so
// far is of no use; begin again.
var ErrChanged = errors.New("content changed")

const (
	operation = "download"
	// maxResumes bounds the resumes in a row that bring nothing.
	maxResumes = 5
	// maxWait is the longest Retry-After that a resume waits out, as a call does.
	maxWait = time.Minute
)

// A content is one version of a result, or a part of it, read across
// connections that break.
type content struct {
	ctx     context.Context
	source  *source
	version version
	framed  bool  // its end can be told from a broken connection
	repeats bool  // the caller wants repetitions
	pos     int64 // of the next byte
	end     int64 // behind the last byte; -1: where the stream ends
	err     error // for good
	excess  bool  // more came than was announced, so that it may be of another place

	mu        sync.Mutex // of stream, which Close looks at from any goroutine
	stream    io.ReadCloser
	left      int64 // what the stream may still bring; -1: not known
	status    int
	requestID string
	attempts  int
	resumes   int
	fruitless int // resumes since the last byte
}

// open requests the content from an offset on. It begins at 0 if the version
// asked for is no longer there, which the caller finds in pos.
func (s *source) open(ctx context.Context, from, end int64, of version) (*content, error) {
	r := s.ask(ctx, from, end, of, 0)
	c := &content{ctx: ctx, source: s, version: of, repeats: r.Repeats, pos: from, end: end}
	if err := c.begin(&r); err != nil {
		return nil, err
	}
	return c, nil
}

// at returns what reads another part of the same version.
func (c *content) at(ctx context.Context, from, end int64) *content {
	return &content{ctx: ctx, source: c.source, version: c.version, framed: c.framed, repeats: c.repeats, pos: from, end: end}
}

// begin takes in the first answer.
func (c *content) begin(r *transport.Result) error {
	if err := c.admit(r); err != nil || r.StatusCode == http.StatusPartialContent {
		return err
	}
	c.version, c.framed = newVersion(r), r.Framed
	c.pos, c.end, c.left = 0, r.Length, r.Length
	return nil
}

// admit takes the answer's stream over, or closes it: a 206 must be the part
// that is due.
func (c *content) admit(r *transport.Result) error {
	c.attempts += r.Attempts
	c.requestID = r.RequestID
	if r.Failure != nil {
		r.Failure.Attempts = c.attempts
		if r.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			r.Failure.Err = transport.Reason("the content no longer has the part that was asked for", ErrChanged, r.Failure.Err)
		}
		return (*Error)(r.Failure)
	}
	c.status = r.StatusCode
	c.mu.Lock()
	c.stream = r.Stream
	c.mu.Unlock()
	if r.StatusCode == http.StatusPartialContent {
		if err := c.admitPart(r); err != nil {
			c.stream.Close()
			return c.failure(err)
		}
	}
	return nil
}

func (c *content) admitPart(r *transport.Result) error {
	first, last, total, ok := parseContentRange(r.Header)
	switch {
	case !ok || isMultipart(r.Header) || first != c.pos || c.end >= 0 && last >= c.end || r.Length >= 0 && r.Length != last-first+1:
		return transport.Reason("the answer is not the part of the content that was asked for", transport.ErrBadResponse)
	case c.version == version{}:
		c.version = newVersion(r)
	case c.version.ETag != "" && r.Header.Get("ETag") == "":
		// RFC 9110 (15.3.7) has a part repeat the ETag, though not the Last-Modified.
		return transport.Reason("the answer does not tell of which content it is a part", ErrChanged)
	case c.version.contradicts(r.Header) || c.version.Length >= 0 && c.version.Length != total:
		return transport.Reason("the content has changed", ErrChanged)
	}
	c.version.Length, c.framed = total, true
	if c.end < 0 || c.end > total {
		c.end = total
	}
	c.left = last - first + 1
	return nil
}

// Read reads on, and resumes what broke. Its errors but io.EOF are [*Error]s.
func (c *content) Read(p []byte) (int, error) {
	for c.err == nil {
		if c.stream == nil {
			c.err = c.resume(nil)
			continue
		}
		n, err := c.stream.Read(p)
		if c.left >= 0 && int64(n) > c.left {
			n = int(c.left)
			c.excess = true
			c.err = c.failure(transport.Reason("the answer is longer than announced", transport.ErrBadResponse))
		}
		c.pos += int64(n)
		if c.left >= 0 {
			c.left -= int64(n)
		}
		if n > 0 {
			c.fruitless = 0
			return n, nil
		}
		switch {
		case err == nil:
			return 0, c.err
		case err == io.EOF && c.end < 0, c.pos == c.end && (err == io.EOF || isBreak(err)):
			c.err = io.EOF
		case err == io.EOF:
			c.err = c.resume(transport.Reason("the answer was cut off", transport.ErrBadResponse, io.ErrUnexpectedEOF))
		default:
			c.err = c.resume(err)
		}
	}
	return 0, c.err
}

// resume asks for the rest after a stream that ended with cause, or for the
// first part of another range if that is nil.
func (c *content) resume(cause error) error {
	for {
		if cause != nil {
			c.Close()
			if err := c.stop(cause); err != nil {
				return err
			}
			c.fruitless++
			c.resumes++
		}
		end := c.end
		if end == c.version.Length {
			end = -1
		}
		r := c.source.ask(c.ctx, c.pos, end, c.version, c.fruitless)
		if r.Failure == nil && r.StatusCode != http.StatusPartialContent {
			c.attempts += r.Attempts
			c.status, c.requestID = r.StatusCode, r.RequestID
			r.Stream.Close()
			words := "the content has changed"
			if r.Header.Get("ETag") == c.version.ETag && r.Header.Get("Last-Modified") == c.version.LastModified {
				words = "the service does not serve the rest of the content alone"
			}
			return c.failure(transport.Reason(words, ErrChanged))
		}
		if c.isWhole(&r) {
			c.attempts += r.Attempts
			c.version.Length, c.end, c.framed = c.pos, c.pos, true
			return io.EOF
		}
		err := c.admit(&r)
		if err == nil || r.Failure == nil || r.Failure.RetryAfter > maxWait || errors.Is(err, ErrBadResponse) {
			return err
		}
		cause = err
	}
}

// isWhole tells whether there is nothing behind a content of unknown length that
// broke: the version, of which If-Range made sure, is as long as what was read.
func (c *content) isWhole(r *transport.Result) bool {
	return r.StatusCode == http.StatusRequestedRangeNotSatisfiable && c.end < 0 && !c.version.contradicts(r.Header) &&
		r.Header.Get("Content-Range") == "bytes */"+strconv.FormatInt(c.pos, 10)
}

// stop returns the error with which reading ends after cause, or nil if it can
// go on.
func (c *content) stop(cause error) error {
	why := ""
	switch {
	case c.ctx.Err() != nil || !isBreak(cause):
	case c.version.Validator == "":
		why = ", and the service gave nothing to resume it by"
	case !c.repeats:
		why = ", and repetition is turned off"
	case c.fruitless >= maxResumes:
		why = fmt.Sprintf(", and %d resumes in a row brought no more", maxResumes)
	default:
		return nil
	}
	if failed, ok := errors.AsType[*Error](cause); ok {
		return failed
	}
	if why != "" {
		cause = transport.Reason(cause.Error()+why, cause)
	}
	return c.failure(cause)
}

// isBreak tells what another try may mend. What a service does not support (501
// and 505) it will not support a moment later.
func isBreak(err error) bool {
	if failed, ok := errors.AsType[*Error](err); ok {
		switch failed.StatusCode {
		case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
			return false
		}
	}
	return errors.Is(err, ErrBadResponse) || errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrServer)
}

func (c *content) failure(err error) error {
	return &Error{Operation: operation, StatusCode: c.status, RequestID: c.requestID, Attempts: c.attempts, Err: err}
}

// Close ends the stream.
func (c *content) Close() error {
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Close()
}
