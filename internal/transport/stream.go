package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// A stream is the body of an answer, read at the caller's pace. Only the wait
// for the other side is timed: a slow reader is no stalled service.
type stream struct {
	ctx    context.Context
	body   io.ReadCloser
	idle   time.Duration
	timer  alarm // already made if there is an idle time, as Close may come at any time
	limit  int64 // 0: none
	offset int64 // bytes of the content before this stream, which count to the limit
	read   int64
	err    error
	log    callLog
	began  time.Time
}

func newStream(ctx context.Context, body io.ReadCloser, timer alarm, r *run) *stream {
	return &stream{
		ctx: ctx, body: body, idle: r.settings.AttemptTimeout, limit: r.settings.MaxResponseBytes,
		timer: timer, log: r.log, began: r.log.now(),
	}
}

func (s *stream) Read(p []byte) (int, error) {
	if ended := s.ctx.Err(); ended != nil && s.err == nil {
		s.end(s.explain(ended))
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.idle > 0 {
		s.timer.set(s.idle)
	}
	n, err := s.body.Read(p)
	s.timer.stop()
	s.read += int64(n)
	switch {
	case s.limit > 0 && s.offset+s.read > s.limit:
		n = int(max(0, int64(n)-(s.offset+s.read-s.limit)))
		s.end(because(matrix[answerTooLarge].words, ErrResponseTooLarge))
	case err == io.EOF:
		s.end(io.EOF)
	case err != nil:
		s.end(s.explain(err))
	}
	return n, s.err
}

// end keeps why reading ended, and logs it.
func (s *stream) end(err error) {
	s.err = err
	s.log.streamed(s.read, s.log.since(s.began), err)
}

func (s *stream) explain(err error) error {
	switch cause := context.Cause(s.ctx); {
	case cause == ErrTimeout:
		return because("the answer stalled", ErrTimeout)
	case cause == os.ErrClosed:
		return because("the answer was closed", os.ErrClosed)
	case s.ctx.Err() != nil:
		return endedBy(s.ctx, s.ctx.Err(), err)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return because(matrix[answerCutOff].words, ErrBadResponse, err)
}

// Close ends the request if it is still running. Reading what is left only to
// keep the connection would cost more than a new one.
func (s *stream) Close() error {
	s.timer.stop()
	err := s.body.Close()
	s.timer.cancel(os.ErrClosed)
	return err
}
