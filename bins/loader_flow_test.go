package bins_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

var lastCard atomic.Int64

// checkouts makes a load of a new card on average every 10 ms, each with a deadline of half a
// second, and returns how many succeeded.
func checkouts(t *testing.T, l *bins.Loader, n int) (succeeded int) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range n {
		time.Sleep(rand.N(20 * time.Millisecond))
		callers.Go(func() {
			_, err := loadWithin(t, l, 500*time.Millisecond, fmt.Sprintf("4%07d", lastCard.Add(1)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				succeeded++
			}
		})
	}
	callers.Wait()
	return succeeded
}

// A service that is overloaded, or behind a rate limiter, gets fewer requests with more cards.
// One that fails a share at random gets as many as before.
func TestLoaderBetweenWorksAndDown(t *testing.T) {
	atMost := func(k int64) func(*service) bool {
		return func(s *service) bool { return s.inFlight.Load() <= k }
	}
	perSecond := func(limit float64) func(*service) bool {
		tokens, refilled := 5.0, time.Time{}
		return func(*service) bool {
			tokens, refilled = min(5, tokens+limit*time.Since(refilled).Seconds()), time.Now()
			if tokens < 1 {
				return false
			}
			tokens--
			return true
		}
	}
	for _, test := range []struct {
		name    string
		accepts func(*service) bool
		want    float64 // share of the loads that succeed
	}{
		{"one in flight", atMost(1), 0.99},
		{"three in flight", atMost(3), 0.99},
		{"20 a second", perSecond(20), 0.98},
		{"50 a second", perSecond(50), 0.98},
		{"a tenth fails at random", func(*service) bool { return rand.IntN(10) > 0 }, 0.97},
		{"a third fails at random", func(*service) bool { return rand.IntN(3) > 0 }, 0.85},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func() time.Duration { return 20*time.Millisecond + rand.N(40*time.Millisecond) }}
			s.fail = func(int64) int {
				if !test.accepts(s) {
					return http.StatusServiceUnavailable
				}
				return 0
			}
			l := loader(t, s, bins.LoaderOptions{})
			if share := float64(checkouts(t, l, 3000)) / 3000; share < test.want {
				t.Errorf("%s: %.1f %% of the loads succeeded, want %.1f", test.name, 100*share, 100*test.want)
			}
			time.Sleep(time.Minute) // until requests without callers have ended
		})
	}
}

// While the service is down, loads fail at once and few requests are sent. The first
// probe after the outage ends it.
func TestLoaderInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 0
		s := &service{latency: func() time.Duration { return 40 * time.Millisecond }, fail: func(int64) int { return status }}
		var log strings.Builder
		l, err := bins.NewLoader(s.client(t, bins.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), bins.LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := checkouts(t, l, 1000); n != 1000 {
			t.Errorf("%d of 1000 loads succeeded", n)
		}
		status = http.StatusServiceUnavailable
		before := s.requests.Load()
		if checkouts(t, l, 6000) != 0 {
			t.Error("a load succeeded in the outage")
		}
		if n := s.requests.Load() - before; n > 60 {
			t.Errorf("%d requests in an outage of a minute", n)
		}
		began := time.Now()
		_, err = l.Load(t.Context(), "411111")
		e, _ := errors.AsType[*bins.Error](err)
		if !errors.Is(err, bins.ErrSuspended) || !errors.Is(err, bins.ErrServer) || !e.Retryable() || e.RetryAfter <= 0 || e.RetryAfter > 5*time.Second || time.Since(began) > time.Second {
			t.Errorf("%v after %v: %+v", err, time.Since(began), e)
		}
		if stats := l.Stats(); !stats.Paused || stats.Reason != "server_error" || stats.PausedUntil.IsZero() {
			t.Errorf("stats %+v", stats)
		}
		status = 0
		time.Sleep(5 * time.Second)
		if _, err := l.Load(t.Context(), "422222"); err != nil { // the probe
			t.Error(err)
		}
		if n := checkouts(t, l, 1000); n != 1000 {
			t.Errorf("%d of 1000 loads succeeded after the outage", n)
		}
		if pauses, resumes := strings.Count(log.String(), "msg=pause"), strings.Count(log.String(), "msg=resume"); pauses != 1 || resumes != 1 {
			t.Errorf("%d pauses and %d ends logged", pauses, resumes)
		}
	})
}

// Requests that hang, and that their callers have left, do not hold up others.
func TestLoaderPassesRequestsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration {
			if rand.IntN(3) == 0 {
				return time.Hour
			}
			return 40 * time.Millisecond
		}}
		l := loader(t, s, bins.LoaderOptions{})
		if n := checkouts(t, l, 3000); n < 1500 {
			t.Errorf("%d of 3000 loads succeeded, beside a third that hangs", n)
		}
		time.Sleep(time.Minute)
	})
}
