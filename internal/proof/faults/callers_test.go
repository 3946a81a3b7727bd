package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"golang.org/x/time/rate"
)

// lie changes what a round tripper returns in ways that its contract forbids.
func (w *world) lie(a attemptName, resp *http.Response) (*http.Response, error) {
	const neither, both, noHeader, noBody = 0, 1, 2, 3
	kinds := 4
	if resp.StatusCode/100 == 2 && strings.HasSuffix(resp.Request.URL.Path, "/refunds") {
		kinds = 2 // what is left of it may be a receipt
	}
	switch w.chance("lie of " + a.String()).IntN(kinds) {
	case neither:
		resp.Body.Close()
		return nil, nil
	case both:
		resp.Body.Close()
		return resp, errThrown
	case noHeader:
		resp.Header = nil
	case noBody:
		if resp.Request.Method == http.MethodPost { // or an empty content would be a whole one
			resp.Body.Close()
			resp.Body = nil
		}
	}
	return resp, nil
}

var errNoToken = errors.New("the token server is away")

// A source gives the token that the service accepts at the time.
type source struct{ w *world }

func (s source) Token(ctx context.Context) (string, error) {
	who := callOf(ctx).String()
	s.w.mu.Lock()
	s.w.questions[who]++
	n := s.w.questions[who]
	s.w.mu.Unlock()
	if s.w.tokens.delay > 0 && !sleep(ctx, s.w.tokens.delay) {
		return "", ctx.Err()
	}
	switch does := s.w.misbehave(ctx, tokenSource); {
	case does == lies:
		return pick(s.w.chance(fmt.Sprint("token ", who, n)), "", "two words", "t-1"), nil
	case does == fails, s.w.tokenFails(who, n):
		return "", errNoToken
	}
	s.w.service.mu.Lock()
	defer s.w.service.mu.Unlock()
	return tokenOf(s.w.service.generation), nil
}

// A watchedLimiter is the caller's.
type watchedLimiter struct {
	w *world
	*rate.Limiter
}

func (l *watchedLimiter) Wait(ctx context.Context) error {
	if l.w.misbehave(ctx, limiter) == fails {
		return errThrown
	}
	return l.Limiter.Wait(ctx)
}

// A watchedLogger is the caller's, for all that it is told.
type watchedLogger struct{ w *world }

func (watchedLogger) Enabled(context.Context, slog.Level) bool { return true }
func (l watchedLogger) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l watchedLogger) WithGroup(string) slog.Handler          { return l }

func (l watchedLogger) Handle(ctx context.Context, _ slog.Record) error {
	l.w.misbehave(ctx, logger)
	return nil
}
