package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

// An issuer is a token endpoint. It issues the tokens t1, t2 and so on.
type issuer struct {
	lifetime, latency time.Duration
	hangs             bool // it ignores its context
	fails             atomic.Pointer[error]
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
	if err := i.fails.Load(); err != nil {
		return "", time.Time{}, *err
	}
	if i.lifetime == 0 {
		return fmt.Sprint("t", n), time.Time{}, nil
	}
	return fmt.Sprint("t", n), time.Now().Add(i.lifetime), nil
}

// guard is a service that refuses revoked tokens.
func (i *issuer) guard(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond) // so that calls overlap
	var n int64
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer t%d", &n); err != nil || n <= i.revoked.Load() {
		return reply(401, ""), nil
	}
	return reply(200, ""), nil
}

// A call ends by its deadline. The fetch goes on, so that calls that are shorter than it get
// the token in the end. A fetch that hangs holds one goroutine, and ends after 30 seconds if
// it heeds its context.
func TestFetchOutlivesItsCallers(t *testing.T) {
	for _, test := range []struct {
		latency   time.Duration
		hangs     bool
		works     time.Duration // when the first call works
		mostAsked int64
	}{
		{300 * time.Millisecond, false, 400 * time.Millisecond, 1},
		{29 * time.Second, false, 29100 * time.Millisecond, 1},
		{10 * time.Second, true, 20100 * time.Millisecond, 1},
		{31 * time.Second, false, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: time.Hour, latency: test.latency, hangs: test.hangs}
			c := newClient(t, serve(i.guard), WithTokenSource(auth.Cached(i.fetch)))
			began, worked := time.Now(), time.Duration(0)
			for time.Since(began) < time.Minute && worked == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
				call := time.Now()
				r := c.get(ctx)
				if r.Failure == nil {
					worked = time.Since(began)
				} else if check(t, r.err(), fault.ErrCredential); time.Since(call) > 80*time.Millisecond {
					t.Errorf("%v: %v after %v", test.latency, r.err(), time.Since(call))
				}
				cancel()
				time.Sleep(100*time.Millisecond - time.Since(call))
			}
			if i.most.Load() != 1 || i.asked.Load() > test.mostAsked || worked > test.works || worked == 0 && test.works > 0 {
				t.Errorf("%v: works after %v, %d fetches, %d at once", test.latency, worked, i.asked.Load(), i.most.Load())
			}
			time.Sleep(time.Minute) // the last fetch ends
		})
	}
}

// All calls of all clients share one fetch and one token, until it is revoked. Then each call
// makes one more request, and all share one fetch.
func TestCachedTokenIsShared(t *testing.T) {
	for _, lifetime := range []time.Duration{0, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: lifetime, latency: time.Second}
			source := WithTokenSource(auth.Cached(i.fetch))
			clients := []*Client{newClient(t, serve(i.guard), source), newClient(t, serve(i.guard), source)}
			for round := range int64(3) {
				var calls sync.WaitGroup
				for n := range 20 {
					calls.Go(func() {
						if r := clients[n%2].Do(t.Context(), write(), nil); r.Failure != nil || round > 0 && r.Attempts != 2 {
							t.Errorf("round %d: %d attempts, %v", round, r.Attempts, r.err())
						}
					})
				}
				calls.Wait()
				time.Sleep(time.Hour)
				if r := clients[0].get(t.Context()); r.Failure != nil || r.Attempts != 1 || i.asked.Load() != round+1 {
					t.Errorf("round %d: %d attempts, fetched %d times, %v", round, r.Attempts, i.asked.Load(), r.err())
				}
				i.revoked.Store(round + 1)
			}
		})
	}
}

// Of calls that were sent with one token and are refused one after the other, only the first
// makes the source fetch another.
func TestCachedTokenIsDroppedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, arrived := &issuer{latency: 10 * time.Millisecond}, atomic.Int64{}
		c := newClient(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") == "Bearer t1" {
				time.Sleep(time.Duration(arrived.Add(1)) * 50 * time.Millisecond)
			}
			return i.guard(r)
		}), WithTokenSource(auth.Cached(i.fetch)))
		i.revoked.Store(1)
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if r := c.get(t.Context()); r.Failure != nil || r.Attempts != 2 {
					t.Errorf("%d attempts, %v", r.Attempts, r.err())
				}
			})
		}
		if calls.Wait(); i.asked.Load() != 2 {
			t.Errorf("fetched %d times", i.asked.Load())
		}
	})
}
