package faults

import (
	"context"
	"errors"
	"fmt"
)

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
