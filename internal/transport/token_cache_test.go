package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An issuer is a token endpoint: it issues t1, t2 and so on, which live for a
// time, and takes its own time about it.
type issuer struct {
	lifetime, latency time.Duration
	hangs             bool // does not even end with its context
	fails             error
	asked, busy, most atomic.Int64
	revoked           atomic.Int64 // the last token that is no longer valid
}

func (i *issuer) fetch(ctx context.Context) (string, time.Time, error) {
	n := i.asked.Add(1)
	i.most.Store(max(i.most.Load(), i.busy.Add(1)))
	defer i.busy.Add(-1)
	if i.hangs {
		time.Sleep(i.latency)
	}
	select {
	case <-time.After(i.latency):
	case <-ctx.Done():
		return "", time.Time{}, ctx.Err()
	}
	if i.fails != nil {
		return "", time.Time{}, i.fails
	}
	if i.lifetime == 0 {
		return fmt.Sprint("t", n), time.Time{}, nil
	}
	return fmt.Sprint("t", n), time.Now().Add(i.lifetime), nil
}

// guard is a service that refuses what is revoked.
func (i *issuer) guard(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond) // so that calls meet
	var n int64
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer t%d", &n); err != nil || n <= i.revoked.Load() {
		return reply(401, ""), nil
	}
	return reply(200, ""), nil
}

// TestCachedTokenIsFetchedOnce proves that all callers share one fetch, and one
// token for as long as it lives.
func TestCachedTokenIsFetchedOnce(t *testing.T) {
	for _, lifetime := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: lifetime, latency: time.Second}
			source := CachedToken(i.fetch)
			clients := []*Client{newClient(t, serve(i.guard), WithTokenSource(source)), newClient(t, serve(i.guard), WithTokenSource(source))}
			for range 40 {
				var calls sync.WaitGroup
				for n := range 10 {
					calls.Go(func() {
						if r := clients[n%2].get(t.Context()); r.Failure != nil {
							t.Error(r.err())
						}
					})
				}
				calls.Wait()
				time.Sleep(time.Minute)
			}
			if i.asked.Load() != 1 {
				t.Errorf("fetched %d times within 40 minutes of %v", i.asked.Load(), lifetime)
			}
		})
	}
}

// TestCachedTokenIsRenewedEarly proves that no call waits for the next token while
// there is a valid one, even if the endpoint is slow or fails, and that instances
// do not renew together.
func TestCachedTokenIsRenewedEarly(t *testing.T) {
	for name, i := range map[string]*issuer{
		"quick": {lifetime: time.Hour}, "slow": {lifetime: time.Hour, latency: 20 * time.Second}, "short": {lifetime: 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := CachedToken(i.fetch)
			if _, err := source.Token(t.Context()); err != nil {
				t.Fatal(err)
			}
			step := i.lifetime / 1000
			for range 5000 {
				time.Sleep(step)
				began := time.Now()
				token, err := source.Token(t.Context())
				if err != nil || time.Since(began) != 0 || token == "" {
					t.Fatalf("%s: %q, %v after %v", name, token, err, time.Since(began))
				}
			}
			if n := i.asked.Load(); n < 6 || n > 7 || i.most.Load() != 1 {
				t.Errorf("%s: fetched %d times in five lifetimes, %d at once", name, n, i.most.Load())
			}
			time.Sleep(time.Minute)
		})
	}
	times := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: time.Hour}
			source, began := CachedToken(i.fetch), time.Now()
			for i.asked.Load() < 2 {
				time.Sleep(time.Second)
				source.Token(t.Context())
			}
			took := time.Since(began)
			if times[took] = true; took < 48*time.Minute || took > 54*time.Minute+2*time.Second {
				t.Errorf("renewed after %v", took)
			}
		})
	}
	if len(times) < 10 {
		t.Errorf("20 instances renew at %d different times", len(times))
	}
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lifetime: time.Hour}
		source := CachedToken(i.fetch)
		source.Token(t.Context())
		i.fails = errors.New("the endpoint is down")
		for range 59 * 60 {
			time.Sleep(time.Second)
			if _, err := source.Token(t.Context()); err != nil {
				t.Errorf("a renewal that failed is told: %v", err)
			}
			synctest.Wait()
		}
		if n := i.asked.Load(); n < 3 || n > 12 {
			t.Errorf("asked %d times in the last minutes", n)
		}
		time.Sleep(time.Minute)
		if _, err := source.Token(t.Context()); !errors.Is(err, i.fails) {
			t.Errorf("after the end: %v", err)
		}
		i.fails = nil
		if _, err := source.Token(t.Context()); err != nil {
			t.Errorf("the failure stayed: %v", err)
		}
	})
}

// TestCachedTokenEndsWithItsCaller proves that a call waits no longer than it may,
// that a fetch goes on while anybody waits for it and no longer, and that one that
// hangs keeps one goroutine.
func TestCachedTokenEndsWithItsCaller(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: time.Hour, latency: 10 * time.Second, hangs: hangs}
			c := newClient(t, serve(i.guard), WithTokenSource(CachedToken(i.fetch)))
			wait := func(d time.Duration, is ...error) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				began := time.Now()
				r := c.get(ctx)
				if check(t, r.err(), is...); r.Failure != nil && (is == nil || time.Since(began) != d) {
					t.Errorf("hangs %v: %v after %v", hangs, r.err(), time.Since(began))
				}
			}
			for range 3 {
				wait(time.Second, context.DeadlineExceeded, ErrCredential)
				synctest.Wait()
			}
			if hangs && i.asked.Load() != 1 || !hangs && (i.asked.Load() != 3 || i.busy.Load() != 0) {
				t.Errorf("hangs %v: asked %d times, %d still wait", hangs, i.asked.Load(), i.busy.Load())
			}
			var calls sync.WaitGroup
			calls.Go(func() { wait(5*time.Second, context.DeadlineExceeded) })
			calls.Go(func() { wait(time.Minute) }) // for whom the fetch goes on
			calls.Wait()
			if i.most.Load() != 1 {
				t.Errorf("hangs %v: %d fetches at once", hangs, i.most.Load())
			}
		})
	}
}

// TestCachedTokenRecovers proves that a revoked token costs one more request, and
// all that were refused with it one fetch.
func TestCachedTokenRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lifetime: time.Hour, latency: time.Second}
		c := newClient(t, serve(i.guard), WithTokenSource(CachedToken(i.fetch)))
		for round := range int64(3) {
			var calls sync.WaitGroup
			for range 20 {
				calls.Go(func() {
					if r := c.Do(t.Context(), write(), nil); r.Failure != nil || round > 0 && r.Attempts != 2 {
						t.Errorf("round %d: %d attempts, %v", round, r.Attempts, r.err())
					}
				})
			}
			calls.Wait()
			if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 1 || i.asked.Load() != round+1 {
				t.Errorf("round %d: %d attempts, fetched %d times, %v", round, r.Attempts, i.asked.Load(), r.err())
			}
			i.revoked.Store(round + 1)
		}
	})
}

// TestNoTokenIsOneCondition proves that the call which saw the 401 is told the same as
// those that are not sent for want of a token: that the source fails, which passes.
func TestNoTokenIsOneCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lifetime: time.Hour}
		c := newClient(t, serve(i.guard), WithTokenSource(CachedToken(i.fetch)))
		if r := c.get(t.Context()); r.Failure != nil {
			t.Fatal(r.err())
		}
		i.revoked.Store(1)
		i.fails = errors.New("the endpoint is down")
		for n, sent := range []int{1, 0, 0} {
			r := c.Do(t.Context(), write(), nil)
			check(t, r.err(), ErrCredential, i.fails)
			if f := r.Failure; f.Condition() != "no_credential" || !f.Retryable() || f.Cause() != i.fails || f.Attempts != sent || errors.Is(r.err(), ErrUnauthorized) != (sent == 1) {
				t.Errorf("call %d: %s, retryable %v, %v", n+1, f.Condition(), f.Retryable(), r.err())
			}
			if want := []Outcome{OutcomeNotSent, OutcomeRejected}[sent]; r.Outcome != want {
				t.Errorf("call %d: %v, want %v", n+1, r.Outcome, want)
			}
		}
		i.fails = nil
		i.revoked.Store(100)
		if f := c.get(t.Context()).Failure; f.Condition() != "unauthorized" || f.Retryable() {
			t.Errorf("a new token that is refused: %s, retryable %v", f.Condition(), f.Retryable())
		}
	})
}

// TestRenewalServesWhoComesLate proves that a fetch which began in the background goes
// on though a call that joined it has left, and that a refusal of an older token drops
// none.
func TestRenewalServesWhoComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lifetime: 20 * time.Second}
		source := CachedToken(i.fetch)
		source.Token(t.Context())
		i.latency = 30 * time.Second
		time.Sleep(19 * time.Second)
		source.Token(t.Context()) // begins the renewal
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if token, err := source.Token(ctx); err == nil {
			t.Errorf("an expired token: %q", token)
		}
		if token, err := source.Token(t.Context()); token != "t2" || err != nil || i.asked.Load() != 2 {
			t.Errorf("%q after %d fetches, %v", token, i.asked.Load(), err)
		}
		i.latency = time.Hour
		time.Sleep(19 * time.Second)
		source.Token(t.Context()) // begins one that hangs
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		i.latency = 0
		if token, err := source.Token(t.Context()); token != "t4" || err != nil {
			t.Errorf("%q after %d fetches, %v", token, i.asked.Load(), err)
		}
		source.(*cachedToken).Refused("t1")
		if token, err := source.Token(t.Context()); token != "t4" || err != nil {
			t.Errorf("%q, %v", token, err)
		}
	})
}

// TestRefusedIsTold proves it for a source of the caller's own.
func TestRefusedIsTold(t *testing.T) {
	source := &ownSource{}
	c := newClient(t, guarded("b", 0), WithTokenSource(source))
	if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 || strings.Join(source.refused, ",") != "a" {
		t.Errorf("%d attempts, told of %q: %v", r.Attempts, source.refused, r.err())
	}
}

type ownSource struct{ refused []string }

func (s *ownSource) Token(context.Context) (string, error) {
	return string(rune('a' + len(s.refused))), nil
}
func (s *ownSource) Refused(token string) { s.refused = append(s.refused, token) }

func TestUnusableCachedToken(t *testing.T) {
	if _, err := New(kind(), "https://service.test", []Option{WithTokenSource(CachedToken(nil))}); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
	asked := 0
	source := CachedToken(func(context.Context) (string, time.Time, error) { asked++; return "a b", time.Time{}, nil })
	c := newClient(t, serve(status(200)), WithTokenSource(source))
	for range 2 {
		check(t, c.get(t.Context()).err(), ErrCredential)
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	good := CachedToken(func(context.Context) (string, time.Time, error) { return "canary", time.Time{}, nil })
	good.Token(t.Context())
	if text := fmt.Sprintf("%+v %#v", good, good); strings.Contains(text, "canary") {
		t.Error(text)
	}
	panics := CachedToken(func(context.Context) (string, time.Time, error) { panic("no vault") })
	defer func() {
		if p := recover(); p != "no vault" {
			t.Errorf("recovered %v", p)
		}
	}()
	newClient(t, serve(status(200)), WithTokenSource(panics)).get(t.Context())
}
