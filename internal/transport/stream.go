package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// A stream is the body of a response, read at the caller's pace. Only the wait
// for the other side is timed: a reader that takes its time, to write to a slow
// disk for example, does not make the service a stalled one.
type stream struct {
	inv    *invocation
	ctx    context.Context
	cancel context.CancelCauseFunc // of ctx, which the request runs under
	body   io.Closer
	reader io.Reader   // of the body
	timer  *time.Timer // ends ctx with ErrTimeout
	offset int64       // of the first byte in the content; it counts to the limit
	read   int64
	err    error // that ended the reading
	began  time.Time
}

// Read keeps the first error for good: what comes after it, of a connection that was
// given up, is not part of the content.
func (s *stream) Read(p []byte) (int, error) {
	// The body may hold bytes that arrived before the context ended. They are not
	// handed out: who has ended a download expects it to end.
	if ended := s.ctx.Err(); ended != nil && s.err == nil {
		s.end(s.explain(ended))
	}
	if s.err != nil {
		return 0, s.err
	}
	s.timer.Reset(s.inv.timeout)
	n, err := s.reader.Read(p)
	s.timer.Stop()
	s.read += int64(n)
	limit := s.inv.settings.MaxResponseBytes
	switch {
	case limit > 0 && s.offset+s.read > limit:
		n = int(max(0, int64(n)-(s.offset+s.read-limit)))
		s.end(NewError(responseTooLarge.msg, ErrResponseTooLarge))
	case err == io.EOF: // of a whole body, as net/http counts it; see Result.Framed
		s.end(io.EOF)
	case err != nil:
		s.end(s.explain(err))
	}
	return n, s.err
}

// peek reads as far into the body of a 200 as it takes to tell whether it is the
// documented error object, which for nearly any content is its first byte, and returns
// it if it is. The stream begins with what was read, and finds any error of reading
// again.
func (s *stream) peek(length int64) (errorObject []byte) {
	if length > maxErrorBody {
		return nil
	}
	var begin []byte
	buffered := bufio.NewReaderSize(s.reader, maxErrorBody+1)
	s.reader = buffered
	for len(begin) <= maxErrorBody && mayBeErrorObject(begin) {
		s.timer.Reset(s.inv.timeout)
		_, err := buffered.Peek(len(begin) + 1)
		if begin, _ = buffered.Peek(buffered.Buffered()); err == io.EOF && isErrorObject(begin) {
			return begin
		} else if err != nil {
			break
		}
	}
	return nil
}

// end keeps why reading ended, and logs it: the call that the stream belongs to has
// ended long ago, as a success.
func (s *stream) end(err error) {
	s.err = err
	s.inv.logContent(s.read, time.Since(s.began), err)
}

// explain says why a read failed. Its error never is io.EOF by errors.Is, which
// loops would take for the end of the content.
func (s *stream) explain(err error) error {
	switch cause := context.Cause(s.ctx); {
	case cause == ErrTimeout:
		return NewError("the response stalled", ErrTimeout)
	case cause == os.ErrClosed:
		return NewError("the response was closed", os.ErrClosed)
	case s.ctx.Err() != nil: // net/http returns what the caller gave as the cause
		return endedBy(s.ctx, foreign(err))
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return CutOff(err)
}

// CutOff is the error of a stream that ended before its content.
func CutOff(cause error) error {
	return newAttemptError(NewError(truncatedResponse.msg, ErrBadResponse, cause), attemptFacts{verdict: truncatedResponse, cause: cause})
}

// Close ends the request if it is still running, from any goroutine. Reading
// what is left only to keep the connection would cost more than a new one.
func (s *stream) Close() error {
	s.timer.Stop()
	err := s.body.Close()
	s.cancel(os.ErrClosed)
	return err
}
