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

// An unusable token is refused with the name of the mistake, and never quoted.
func TestUnusableToken(t *testing.T) {
	for token, mistake := range map[string]string{
		"": "empty", " ": "visible ASCII", " canary": "visible ASCII", "canary ": "visible ASCII", "can ary": "visible ASCII", "can\tary": "visible ASCII",
		"canary\nX: y": "visible ASCII", "canary\x00": "visible ASCII", "canary\x7f": "visible ASCII", "cánary": "visible ASCII", "canary\xff": "visible ASCII",
		"canary" + strings.Repeat("a", maxToken): "visible ASCII",
		"canary\r":                               "ends in a line break", "canary\n": "ends in a line break", "canary\r\n": "ends in a line break",
		"Bearer canary": `begins with "Bearer "`, "bearer canary": `begins with "Bearer "`, " Bearer canary": `begins with "Bearer "`, "BEARER\tcanary": `begins with "Bearer "`,
		"Bearer": `begins with "Bearer "`, "Bearer ": `begins with "Bearer "`, "bearer\n": `begins with "Bearer "`, "Bearer\u00a0canary": `begins with "Bearer "`,
	} {
		_, err := New(testService(), "https://service.test", []Option{WithTokenSource(StaticToken(token))})
		if text := fmt.Sprintf("%+v", err); !errors.Is(err, ErrInvalidArgument) || strings.Contains(text, "canary") || !strings.Contains(text, mistake) {
			t.Errorf("%q: %s", token, text)
		}
		network := serve(status(200))
		c := newClient(t, network, WithTokenSource(TokenFunc(func(context.Context) (string, error) { return token, nil })))
		r := c.get(t.Context())
		check(t, r.err(), ErrCredential)
		if text := Describe("test", r.Failure); strings.Contains(text, "canary") || !strings.Contains(text, "token source") || !strings.Contains(text, mistake) {
			t.Errorf("%q from a source: %s", token, text)
		}
		if network.requests() != 0 || r.Outcome != OutcomeNotSent {
			t.Errorf("%q was sent: %v", token, r.Outcome)
		}
	}
	for _, token := range []string{"bearer_1", strings.Repeat("a", maxToken)} {
		if _, err := newCredential(StaticToken(token)); err != nil {
			t.Error(err)
		}
	}
}

// guarded returns a service that accepts one token.
func guarded(token string, latency time.Duration) *service {
	return serve(func(r *http.Request) (*http.Response, error) {
		time.Sleep(latency)
		if r.Header.Get("Authorization") == "Bearer "+token {
			return reply(200, ""), nil
		}
		return reply(401, ""), nil
	})
}

// asking returns a source that counts its calls.
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

// Each attempt asks the source for a token, because the token of the attempt before may have
// expired in the wait.
func TestEachAttemptGetsAToken(t *testing.T) {
	var asked atomic.Int64
	network := serve(status(503), status(503), status(200))
	r := newClient(t, network, WithRetryWait(0, 0), asking(&asked, func(n int64) (string, error) { return fmt.Sprint("t", n), nil })).get(t.Context())
	if got := network.headers[2].Get("Authorization"); r.Failure != nil || got != "Bearer t3" {
		t.Errorf("the third attempt sent %q: %v", got, r.err())
	}
}

// The source learns of every refused token, also of one that was refused before and then used
// again, for example after a rollback of the issuer.
func TestRefusedTokenComesBack(t *testing.T) {
	accepted := "a"
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") != "Bearer "+accepted {
			return reply(401, ""), nil
		}
		return reply(200, ""), nil
	})
	issued, told := []string{"a", "b", "a", "c"}, []string(nil)
	source := &refusable{token: func() string { return issued[0] }, refused: func(token string) {
		if told = append(told, token); token == issued[0] {
			issued = issued[1:]
		}
	}}
	c := newClient(t, network, WithTokenSource(source))
	for i, step := range []string{"a", "b", "back to a", "c", "c"} {
		if accepted = step[len(step)-1:]; step == "back to a" {
			issued = issued[1:] // without a refusal
		}
		if r := c.get(t.Context()); r.Failure != nil {
			t.Errorf("call %d: %v", i, r.err())
		}
	}
	if fmt.Sprint(told) != "[a a]" {
		t.Errorf("told of %v", told)
	}
}

type refusable struct {
	token   func() string
	refused func(string)
}

func (s *refusable) Token(context.Context) (string, error) { return s.token(), nil }
func (s *refusable) Refused(token string)                  { s.refused(token) }

// All calls that were refused with the same token share one new token, even if a refusal comes
// late.
func TestRenewalIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 50
		var asked atomic.Int64
		network := guarded("new", time.Second)
		c := newClient(t, network, asking(&asked, func(n int64) (string, error) {
			if n <= callers {
				return "old", nil
			}
			time.Sleep(time.Second)
			return "new", nil
		}))
		var calls sync.WaitGroup
		late := WithLimiter(limiterFunc(func(context.Context) error { time.Sleep(time.Minute); return nil })) // after it has the old token
		for i := range callers {
			calls.Go(func() {
				var opts []Option
				if i == 0 {
					opts = append(opts, late)
				}
				if r := c.get(t.Context(), opts...); r.Failure != nil || r.Attempts != 2 {
					t.Errorf("%d attempts: %v", r.Attempts, r.err())
				}
			})
		}
		calls.Wait()
		if n := asked.Load(); n != callers+1 {
			t.Errorf("asked %d times, want one question more than there are callers", n)
		}
	})
}

// The call that asks for a new token may end. The other calls still get a token.
func TestRenewalOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := newClient(t, guarded("new", 0), WithTokenSource(TokenFunc(func(ctx context.Context) (string, error) {
			switch asked.Add(1) {
			case 1, 3, 4: // the first token of each call
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
					t.Errorf("a call failed with another: %v", r.err())
				}
			})
			synctest.Wait()
		}
		begin(time.Second, context.Canceled, ErrUnauthorized)
		begin(2*time.Second, context.Canceled, ErrUnauthorized)
		begin(0)
		calls.Wait()
	})
}

// If a source hangs, every call still ends by its deadline, and only one goroutine waits for
// the source. When the source returns, calls go on. This holds for all clients and calls that
// share an option, or share a source of this package.
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

// The caller can recover from a panic of a source. A source that ends its goroutine, as
// t.FailNow does, ends the caller's goroutine.
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
