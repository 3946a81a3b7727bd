package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
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

// A sharedCache is the caller's, which other programs write to as well.
type sharedCache struct {
	w *world

	mu     sync.Mutex
	values map[string][]byte
}

// cache is the one to be given to loaders and bulk lookups, nil for none.
func (w *world) cache() bins.Cache {
	if w.parts.part != cache {
		return nil
	}
	return &sharedCache{w: w, values: map[string][]byte{}}
}

func (s *sharedCache) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	does := s.w.misbehave(ctx, cache, true)
	if does == fails {
		return nil, errThrown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string][]byte{}
	for i, key := range keys {
		value, ok := s.values[key]
		switch {
		case does == lies:
			found[key+"0"] = value
			found[key] = slices.Concat(value[:len(value)/2], [][]byte{nil, []byte("{}"), []byte(`{"data":{"card":null}}`), []byte("\xff")}[i%4])
		case ok:
			found[key] = value
		}
	}
	return found, nil
}

func (s *sharedCache) Set(ctx context.Context, values map[string][]byte, _ time.Duration) error {
	if s.w.misbehave(ctx, cache, false) == fails { // nobody waits for it
		return errThrown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range values {
		s.values[key] = slices.Clone(value)
	}
	return nil
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
	switch does := s.w.misbehave(ctx, tokenSource, true); {
	case does == lies:
		return pick(s.w.chance(fmt.Sprint("token ", who, n)), "", "two words", "t-1"), nil
	case does == fails, s.w.tokenFails(who, n):
		return "", errNoToken
	}
	s.w.service.mu.Lock()
	defer s.w.service.mu.Unlock()
	return tokenOf(s.w.service.generation), nil
}

// limiter is the one to be given to a client, nil for none.
func (w *wire) limiter() bins.Limiter {
	if w.w.settings.limit == 0 || !w.w.settings.ownLimiter {
		return nil
	}
	return &watchedLimiter{w, rate.NewLimiter(w.w.settings.limit, w.w.settings.burst)}
}

type watchedLimiter struct {
	w *wire
	*rate.Limiter
}

func (l *watchedLimiter) Wait(ctx context.Context) error {
	does := l.w.w.misbehave(ctx, limiter, true)
	if does == fails {
		return errThrown
	}
	var err error
	if does != lies {
		err = l.Limiter.Wait(ctx)
	}
	if err == nil {
		l.w.mu.Lock()
		l.w.leaves++
		l.w.mu.Unlock()
	}
	return err
}

// A watchedLogger is the caller's, for all that it is told.
type watchedLogger struct{ w *world }

func (watchedLogger) Enabled(context.Context, slog.Level) bool { return true }
func (l watchedLogger) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l watchedLogger) WithGroup(string) slog.Handler          { return l }

func (l watchedLogger) Handle(ctx context.Context, _ slog.Record) error {
	if l.w.misbehave(ctx, logger, true) == fails {
		return errThrown
	}
	return nil
}
