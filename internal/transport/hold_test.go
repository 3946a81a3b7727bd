package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

// Every call ends by its deadline, even if a limiter or a function before sending ignores its
// context, and sends nothing later.
func TestCallersCodeHangs(t *testing.T) {
	const hangs = time.Hour
	wait := func() { time.Sleep(hangs) }
	for name, option := range map[string]Option{
		"limiter":                 WithLimiter(limiterFunc(func(context.Context) error { wait(); return nil })),
		"function before sending": WithBeforeSend(func(context.Context) error { wait(); return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{}
				c := p.client(t, WithMaxRetries(0), option)
				for _, call := range []*Call{write(), read()} {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					began := time.Now()
					r := c.Do(ctx, call, nil)
					cancel()
					if took := time.Since(began); took > 10*time.Second+2*await.ReturnGrace {
						t.Errorf("%s took %v", call.Operation, took)
					}
					if r.Outcome != fault.OutcomeNotSent || r.Failure == nil {
						t.Errorf("%v, %v", r.Outcome, r.err())
					}
				}
				time.Sleep(2 * hangs) // all code of the caller returns, and may send its request
				if p.writes.Load() != 0 {
					t.Errorf("%d writes arrived", p.writes.Load())
				}
			})
		})
	}
}
