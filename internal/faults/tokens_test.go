package faults

import (
	"context"
	"errors"
	"sync"
)

var errNoToken = errors.New("the token server is away")

// A source gives the token that the service accepts at the time.
type source struct {
	w  *world
	mu sync.Mutex
	n  int
}

func (s *source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	n := s.n
	s.n++
	s.mu.Unlock()
	if s.w.tokens.delay > 0 && !sleep(ctx, s.w.tokens.delay) {
		return "", ctx.Err()
	}
	if n < len(s.w.tokens.fails) && s.w.tokens.fails[n] {
		return "", errNoToken
	}
	s.w.service.mu.Lock()
	defer s.w.service.mu.Unlock()
	return tokenOf(s.w.service.generation), nil
}
