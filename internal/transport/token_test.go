package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var unusableTokens = map[string]string{
	"empty": "", "space": " ", "leading space": " secret", "trailing space": "secret ", "inner space": "sec ret", "tab": "sec\tret",
	"CR": "secret\r", "LF": "secret\nX: y", "NUL": "secret\x00", "DEL": "secret\x7f", "non-ASCII": "sécret", "no UTF-8": "secret\xff",
	"beyond 8 KiB": "secret" + strings.Repeat("a", maxToken),
}

func TestUnusableCredential(t *testing.T) {
	if _, err := newCredential(StaticToken(strings.Repeat("a", maxToken))); err != nil {
		t.Error(err)
	}
	for name, token := range unusableTokens {
		_, err := New(kind(), "https://service.test", []Option{WithTokenSource(StaticToken(token))})
		if !errors.Is(err, ErrInvalidArgument) || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		network := serve(status(200))
		c := newClient(t, network, WithTokenSource(TokenFunc(func(context.Context) (string, error) { return token, nil })))
		r := c.get(t.Context())
		check(t, r.err(), ErrCredential)
		if text := Describe("test", r.Failure); strings.Contains(text, "secret") || !strings.Contains(text, "token source") {
			t.Errorf("%s from a source: %s", name, text)
		}
		if network.requests() != 0 || r.Outcome != OutcomeNotSent {
			t.Errorf("%s was sent: %v", name, r.Outcome)
		}
	}
}

// guarded is a service that accepts one token, and takes its time.
func guarded(token string, latency time.Duration) *service {
	return serve(func(r *http.Request) (*http.Response, error) {
		time.Sleep(latency)
		if r.Header.Get("Authorization") == "Bearer "+token {
			return reply(200, ""), nil
		}
		return reply(401, ""), nil
	})
}

// asking is a source that counts its questions and replies by their number.
func asking(asked *atomic.Int64, response func(n int64) (string, error)) Option {
	return WithTokenSource(TokenFunc(func(context.Context) (string, error) { return response(asked.Add(1)) }))
}

func TestRenewal(t *testing.T) {
	broken := errors.New("no vault")
	for _, test := range []struct {
		name            string
		response        func(n int64) (string, error)
		asked, requests int64
		is              []error // nil: it succeeds
	}{
		{"a new token", func(n int64) (string, error) { return fmt.Sprint("t", n), nil }, 2, 2, nil},
		{"the same token", func(int64) (string, error) { return "t1", nil }, 2, 1, []error{ErrUnauthorized}},
		{"another that is refused too", func(n int64) (string, error) { return fmt.Sprint("x", n), nil }, 2, 2, []error{ErrUnauthorized}},
		{"a source that fails", func(n int64) (string, error) {
			if n > 1 {
				return "", broken
			}
			return "t1", nil
		}, 2, 1, []error{ErrUnauthorized, ErrCredential, broken}},
		{"an unusable token", func(n int64) (string, error) { return []string{"t1", "a b"}[n-1], nil }, 2, 1, []error{ErrUnauthorized, ErrCredential}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int64
			network := guarded("t2", 0)
			began := time.Now()
			synctest.Test(t, func(t *testing.T) {
				began = time.Now()
				r := newClient(t, network, asking(&asked, test.response)).Do(t.Context(), write(), nil)
				if (r.Failure == nil) != (test.is == nil) {
					t.Error(r.err())
				}
				check(t, r.err(), test.is...)
				if test.is != nil && (r.Outcome != OutcomeRejected || r.Failure.StatusCode != 401) {
					t.Errorf("%v, %+v", r.Outcome, r.Failure)
				}
				if time.Since(began) != 0 {
					t.Error("the renewal waited")
				}
			})
			if asked.Load() != test.asked || int64(network.requests()) != test.requests {
				t.Errorf("asked %d times, %d requests", asked.Load(), network.requests())
			}
		})
	}
}

// TestRenewalIsShared proves that callers who were refused with one token ask
// one question, those who come late included.
func TestRenewalIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		var asked atomic.Int64
		network := guarded("new", time.Second)
		c := newClient(t, network, asking(&asked, func(n int64) (string, error) {
			if n <= callers || n == callers+2 {
				return "old", nil
			}
			time.Sleep(time.Second)
			return "new", nil
		}))
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
					t.Errorf("%d attempts: %v", r.Attempts, r.err())
				}
			})
		}
		calls.Wait()
		if n := asked.Load(); n != callers+1 {
			t.Errorf("asked %d times, want one question more than there are callers", n)
		}
		// The source gave this one the old token just before it was refused.
		if r := c.get(t.Context()); r.Failure != nil || asked.Load() != callers+2 {
			t.Errorf("a late caller: asked %d times, %v", asked.Load(), r.err())
		}
	})
}

// TestRenewalOutlivesItsLeader proves that a caller who gives up takes nobody
// with him.
func TestRenewalOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := newClient(t, guarded("new", 0), WithTokenSource(TokenFunc(func(ctx context.Context) (string, error) {
			switch asked.Add(1) {
			case 1, 3, 4: // the first questions of the three callers
				return "old", nil
			}
			select {
			case <-time.After(time.Minute):
				return "new", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})))
		var calls sync.WaitGroup
		begin := func(after time.Duration, is ...error) {
			ctx, cancel := context.WithCancel(t.Context())
			if after > 0 {
				time.AfterFunc(after, cancel)
			}
			calls.Go(func() {
				defer cancel()
				r := c.get(ctx)
				check(t, r.err(), is...)
				if is == nil && r.Failure != nil {
					t.Errorf("a follower failed with its leader: %v", r.err())
				}
			})
			synctest.Wait()
		}
		begin(time.Second, context.Canceled, ErrUnauthorized)   // leads
		begin(2*time.Second, context.Canceled, ErrUnauthorized) // follows, and may lead then
		begin(0)
		calls.Wait()
	})
}

// TestRenewalChain proves that a response which is refused in its turn is asked
// for again.
func TestRenewalChain(t *testing.T) {
	valid := "t1"
	network := serve(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") == "Bearer "+valid {
			return reply(200, ""), nil
		}
		return reply(401, ""), nil
	})
	held, asked := "t1", 0
	c := newClient(t, network, WithTokenSource(TokenFunc(func(context.Context) (string, error) {
		if asked++; asked > 1 {
			held = valid
		}
		return held, nil
	})))
	for round, token := range []string{"t1", "t2", "t1", "t3", "t1"} {
		valid, asked = token, 0
		if r := c.get(t.Context()); r.Failure != nil {
			t.Errorf("round %d: %v", round, r.err())
		}
	}
}

// TestHungSource proves that every call ends by its deadline although the source
// does not, that one goroutine waits for it, and that calls go on when it is back. It is
// the same whether clients and calls share an option or make their own, if the source is
// of this package.
func TestHungSource(t *testing.T) {
	for name, options := range map[string]func(hang func(context.Context) (string, error)) func() Option{
		"one option": func(hang func(context.Context) (string, error)) func() Option {
			o := WithTokenSource(&anotherSource{hang})
			return func() Option { return o }
		},
		"one TokenFunc": func(hang func(context.Context) (string, error)) func() Option {
			source := TokenFunc(hang)
			return func() Option { return WithTokenSource(source) }
		},
		"one CachedToken": func(hang func(context.Context) (string, error)) func() Option {
			source := CachedToken(func(ctx context.Context) (string, time.Time, error) {
				token, err := hang(ctx)
				return token, time.Time{}, err
			})
			return func() Option { return WithTokenSource(source) }
		},
	} {
		t.Run(name, func(t *testing.T) { testHungSource(t, options) })
	}
}

type anotherSource struct {
	token func(context.Context) (string, error)
}

func (s *anotherSource) Token(ctx context.Context) (string, error) { return s.token(ctx) }

func testHungSource(t *testing.T, options func(hang func(context.Context) (string, error)) func() Option) {
	synctest.Test(t, func(t *testing.T) {
		var waiting atomic.Int64
		release := make(chan struct{})
		network := serve(status(200))
		option := options(func(context.Context) (string, error) {
			waiting.Add(1)
			defer waiting.Add(-1)
			<-release
			return "token", nil
		})
		clients := []*Client{newClient(t, network, option()), newClient(t, network, option()), newClient(t, network)}
		for round := range 3 {
			var calls sync.WaitGroup
			for i := range 20 {
				calls.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					began := time.Now()
					var own []Option
					if i%3 == 2 {
						own = []Option{option()}
					}
					r := clients[i%3].Do(ctx, write(), own)
					check(t, r.err(), context.DeadlineExceeded, ErrCredential)
					if text := Describe("test", r.Failure); !strings.Contains(text, "the deadline passed: the token source did not return in time") {
						t.Error(text)
					}
					if took := time.Since(began); took != 3*time.Second || r.Outcome != OutcomeNotSent {
						t.Errorf("round %d: %v after %v", round, r.Outcome, took)
					}
				})
			}
			calls.Wait()
			if n := waiting.Load(); n != 1 {
				t.Errorf("round %d: %d goroutines wait for the source", round, n)
			}
		}
		close(release)
		if r := clients[0].get(t.Context()); r.Failure != nil {
			t.Error(r.err())
		}
	})
}

// TestSourceThatDoesNotReturn proves that a panic comes where the caller can
// recover from it, and that a source which ends its goroutine, as t.FailNow does,
// ends the caller's.
func TestSourceThatDoesNotReturn(t *testing.T) {
	c := newClient(t, serve(status(200)), WithTokenSource(TokenFunc(func(context.Context) (string, error) { panic("no vault") })))
	for range 2 {
		func() {
			defer func() {
				if p := recover(); p != "no vault" {
					t.Errorf("recovered %v", p)
				}
			}()
			c.get(t.Context())
		}()
	}
	c = newClient(t, serve(status(200)), WithTokenSource(TokenFunc(func(context.Context) (string, error) {
		runtime.Goexit()
		return "", nil
	})))
	ended, returned := make(chan bool), false
	go func() {
		defer close(ended)
		c.get(t.Context())
		returned = true
	}()
	if <-ended; returned {
		t.Error("the goroutine goes on")
	}
}
