package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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

// asking is a source that counts its questions and answers by their number.
func asking(asked *atomic.Int64, answer func(n int64) (string, error)) Option {
	return WithTokenSource(TokenFunc(func(context.Context) (string, error) { return answer(asked.Add(1)) }))
}

func TestRenewal(t *testing.T) {
	broken := errors.New("no vault")
	for _, test := range []struct {
		name            string
		answer          func(n int64) (string, error)
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
				r := newClient(t, network, asking(&asked, test.answer)).Do(t.Context(), write(), nil)
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

// TestNothingToRenew proves that a credential that cannot change is not sent
// twice.
func TestNothingToRenew(t *testing.T) {
	for name, opts := range map[string][]Option{
		"static token": {WithTokenSource(StaticToken("t1"))}, "no token": nil, "a header": {WithHeader("Authorization", "Basic x")},
	} {
		network := serve(status(401))
		r := newClient(t, network, opts...).get(t.Context())
		check(t, r.err(), ErrUnauthorized)
		if network.requests() != 1 {
			t.Errorf("%s: %d requests", name, network.requests())
		}
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
			if n <= callers {
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
		late := WithTokenSource(TokenFunc(func(context.Context) (string, error) { asked.Add(1); return "old", nil }))
		if r := c.get(t.Context(), late); r.Failure != nil || asked.Load() != callers+2 {
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

// TestRenewalFailsForAll proves that the failure of a source is shared by those
// who wait, and forgotten afterwards.
func TestRenewalFailsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 10
		broken := errors.New("no vault")
		var asked atomic.Int64
		c := newClient(t, guarded("new", time.Second), asking(&asked, func(n int64) (string, error) {
			switch {
			case n <= callers, n == callers+2: // the first questions of all
				return "old", nil
			case n == callers+1:
				time.Sleep(time.Second)
				return "", broken
			}
			return "new", nil
		}))
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() { check(t, c.get(t.Context()).err(), broken, ErrCredential, ErrUnauthorized) })
		}
		calls.Wait()
		if n := asked.Load(); n != callers+1 {
			t.Errorf("asked %d times", n)
		}
		if r := c.get(t.Context()); r.Failure != nil {
			t.Errorf("the failure stayed: %v", r.err())
		}
	})
}

// TestRenewalChain proves that an answer which is refused in its turn is asked
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
