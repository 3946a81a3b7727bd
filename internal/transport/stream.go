package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// A stream is the body of a response, read at the caller's pace. The timer runs only while
// the stream waits for the service, so a slow reader, such as a slow disk, causes no timeout.
type stream struct {
	inv    *invocation
	ctx    context.Context
	cancel context.CancelCauseFunc // cancels ctx, the context of the request
	body   io.Closer
	reader io.Reader   // of the body
	timer  *time.Timer // ends ctx with ErrTimeout
	read   int64
	err    error // the error that ended the reading
	began  time.Time
}

// Read returns the first error again on every later call. Bytes that come after an error are
// not part of the content.
func (s *stream) Read(p []byte) (int, error) {
	// The body may still hold bytes that arrived before the context ended. Do not return
	// them: a canceled download ends at once.
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
	switch {
	case err == io.EOF: // the body is complete by net/http's count; see Result.Framed
		s.end(io.EOF)
	case err != nil:
		s.end(s.explain(err))
	}
	return n, s.err
}

// end keeps the error and logs it. The call was logged earlier, as a success.
func (s *stream) end(err error) {
	s.err = err
	s.inv.logContent(s.read, time.Since(s.began), err)
}

// explain says why a read failed. Its error never matches io.EOF, because a loop would read
// that as the end of the content.
func (s *stream) explain(err error) error {
	switch cause := context.Cause(s.ctx); {
	case cause == fault.ErrTimeout:
		return fault.WithFacts(fault.NewError("the response stalled", fault.ErrTimeout), fault.Facts{Verdict: fault.AttemptTimedOut})
	case cause == os.ErrClosed:
		return fault.NewError("the response was closed", os.ErrClosed)
	case s.ctx.Err() != nil: // net/http returns the cause that the caller gave
		return fault.EndedBy(s.ctx, fault.Foreign(err))
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return CutOff(err)
}

// CutOff is the error of a stream that ended before its content.
func CutOff(cause error) error {
	return fault.WithFacts(fault.NewError(fault.TruncatedResponse.Text, fault.ErrBadResponse, cause), fault.Facts{Verdict: fault.TruncatedResponse, Cause: cause})
}

// Close ends the request, from any goroutine. It does not read the rest to keep the
// connection: a new connection costs less.
func (s *stream) Close() error {
	s.timer.Stop()
	err := s.body.Close()
	s.cancel(os.ErrClosed)
	return err
}

// verdict judges the beginning of the content, and returns it if it is none. Otherwise the stream
// reads it again, and the error that came after it.
func (s *stream) verdict(h http.Header) (_ *fault.Verdict, begin []byte) {
	ahead := &lookahead{stream: s}
	if v := fault.JudgeContent(h, bufio.NewReader(io.LimitReader(ahead, fault.MaxErrorBody))); v != fault.Success {
		return v, ahead.begin
	}
	rest := s.reader
	if ahead.err != nil {
		rest = ahead // fails again
	}
	s.reader = io.MultiReader(bytes.NewReader(ahead.begin), rest)
	return fault.Success, nil
}

// A lookahead reads the beginning of a stream, and keeps it. It reads no more after an error.
type lookahead struct {
	stream *stream
	begin  []byte
	err    error
}

func (l *lookahead) Read(p []byte) (n int, err error) {
	if l.err == nil {
		l.stream.timer.Reset(l.stream.inv.timeout)
		n, l.err = l.stream.reader.Read(p)
		l.begin = append(l.begin, p[:n]...)
	}
	return n, l.err
}
