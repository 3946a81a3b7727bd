package bins_test

import (
	"context"
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

// checkouts makes a load of a new card on average every 10 ms, each with a deadline, and returns
// how many succeeded.
func checkouts(t *testing.T, l *bins.Loader, n int, deadline time.Duration) (succeeded int) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range n {
		time.Sleep(rand.N(20 * time.Millisecond))
		callers.Go(func() {
			_, err := loadWithin(t, l, deadline, fmt.Sprintf("4%07d", lastCard.Add(1)))
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

// A service that is overloaded, or behind a rate limiter, gets fewer requests with more cards after five seconds at
// most. internal/flow tests more such services.
func TestLoaderAdapts(t *testing.T) {
	for name, refuse := range map[string]func(*service) int{"one in flight": atMost(1, 503), "20 a second": perSecond(20)} {
		synctest.Test(t, func(t *testing.T) {
			const loads, within = 500, 500 * time.Millisecond
			s := &service{latency: 20 * time.Millisecond, delay: func() time.Duration { return rand.N(40 * time.Millisecond) }}
			s.refuse = func(string) int { return refuse(s) }
			l := loader(t, s, bins.LoaderOptions{}, bins.WithRetryWait(200*time.Millisecond, 5*time.Second)) // the defaults
			checkouts(t, l, loads, within)
			if n := checkouts(t, l, loads, within); n < loads*8/10 {
				t.Errorf("%s: %d of %d loads succeeded", name, n, loads)
			}
		})
	}
}

// While the service fails or hangs, or refuses the credential, loads fail at once and few requests are
// sent. The first probe after the outage ends it.
func TestLoaderInAnOutage(t *testing.T) {
	const within = 150 * time.Millisecond
	for name, outage := range map[string]struct {
		status  int
		latency time.Duration
		is      error
	}{
		"server_error": {http.StatusServiceUnavailable, 40 * time.Millisecond, bins.ErrServer},
		"timeout":      {0, time.Hour, bins.ErrTimeout},
		"unauthorized": {http.StatusUnauthorized, 40 * time.Millisecond, bins.ErrUnauthorized},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 40 * time.Millisecond}
			var log strings.Builder
			l := loader(t, s, bins.LoaderOptions{}, bins.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if n := checkouts(t, l, 100, within); n != 100 {
				t.Errorf("%s: %d of 100 loads succeeded", name, n)
			}
			s.change(func() { s.status, s.latency = outage.status, outage.latency })
			before := s.requests.Load()
			if checkouts(t, l, 1500, within) != 0 {
				t.Errorf("%s: a load succeeded in the outage", name)
			}
			if n := s.requests.Load() - before; n > 150 { // in the second until it shows, one for each load
				t.Errorf("%s: %d requests in fifteen seconds of an outage", name, n)
			}
			for i := 0; i < 1000 && (l.Stats().PausedUntil.IsZero() || time.Until(l.Stats().PausedUntil) < 100*time.Millisecond); i++ { // the next load is not the probe
				time.Sleep(10 * time.Millisecond)
				_, _ = loadWithin(t, l, within, "411111") // a probe
			}
			began := time.Now()
			_, err := l.Load(t.Context(), "422222")
			e, _ := errors.AsType[*bins.Error](err)
			if !errors.Is(err, bins.ErrSuspended) || !errors.Is(err, outage.is) || e.Retryable() == (name == "unauthorized") || e.RetryAfter <= 0 || e.RetryAfter > 30*time.Second || time.Since(began) > 10*time.Millisecond {
				t.Errorf("%s: %v after %v: %+v", name, err, time.Since(began), e)
			}
			if stats := l.Stats(); stats.Reason != name {
				t.Errorf("%s: stats %+v", name, stats)
			}
			s.change(func() { s.status, s.latency = 0, 40*time.Millisecond })
			time.Sleep(30 * time.Second)
			if _, err := l.Load(t.Context(), "433333"); err != nil { // the probe
				t.Errorf("%s: %v", name, err)
			}
			if n := checkouts(t, l, 100, within); n != 100 {
				t.Errorf("%s: %d of 100 loads succeeded after the outage", name, n)
			}
			synctest.Wait() // for the log
			if pauses, resumes := strings.Count(log.String(), "msg=pause"), strings.Count(log.String(), "msg=resume"); pauses != 1 || resumes != 1 {
				t.Errorf("%s: %d pauses and %d ends logged", name, pauses, resumes)
			}
			if lines, loads := strings.Count(log.String(), "\n"), strings.Count(log.String(), "operation=load "); loads != lines || lines == 0 {
				t.Errorf("%s: %d of %d events are of the operation", name, loads, lines)
			}
		})
	}
}

// A loader that starts while the service hangs, or soon before, finds that out after the attempt
// timeout. Then most loads fail at once, and few requests are sent, until the service works.
func TestLoaderStartsInAnOutage(t *testing.T) {
	const within = 80 * time.Millisecond
	for _, worked := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 20 * time.Millisecond}
			l := loader(t, s, bins.LoaderOptions{})
			checkouts(t, l, worked, within)
			s.change(func() { s.latency = time.Hour })
			checkouts(t, l, 1200, within) // 12 seconds
			before, suspended := s.requests.Load(), 0
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				if _, err := loadWithin(t, l, within, fmt.Sprintf("4%07d", lastCard.Add(1))); errors.Is(err, bins.ErrSuspended) {
					suspended++
				}
			}
			if n := s.requests.Load() - before; n > 60 || suspended < 400 {
				t.Errorf("%d worked: %d requests and %d of 600 loads suspended in a minute", worked, n, suspended)
			}
			s.change(func() { s.latency = 20 * time.Millisecond })
			time.Sleep(30 * time.Second)
			checkouts(t, l, 10, within) // the first is the probe
			if n := checkouts(t, l, 100, within); n != 100 {
				t.Errorf("%d worked: %d of 100 loads succeeded after the outage", worked, n)
			}
		})
	}
}

// A limiter that refuses says nothing of the service: the next loads are sent.
func TestLoaderBesideALimiterThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		refuses := false
		s := &service{latency: 40 * time.Millisecond}
		l := loader(t, s, bins.LoaderOptions{}, bins.WithLimiter(limiterFunc(func(context.Context) error {
			if refuses {
				return full
			}
			return nil
		})))
		for i := range 60 {
			refuses = 10 <= i && i < 50
			_, err := loadWithin(t, l, time.Second, fmt.Sprintf("4%07d", i))
			if refuses != errors.Is(err, full) || errors.Is(err, bins.ErrSuspended) || !refuses && err != nil {
				t.Errorf("load %d, refused %t: %v", i, refuses, err)
			}
		}
	})
}

// A service that does not respond is down, also without an attempt timeout: the loader gives up on a
// request after half a minute.
func TestLoaderNeedsNoAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: time.Hour}
		l := loader(t, s, bins.LoaderOptions{}, bins.WithAttemptTimeout(0))
		suspended := 0
		for i := range 120 {
			if _, err := loadWithin(t, l, time.Second, fmt.Sprint(41111100+i)); errors.Is(err, bins.ErrSuspended) {
				suspended++
			}
			time.Sleep(time.Second)
		}
		if n := s.requests.Load(); suspended < 60 || n > 60 {
			t.Errorf("%d loads were suspended, %d requests", suspended, n)
		}
		time.Sleep(time.Minute)
		if n := s.inFlight.Load(); n > 0 {
			t.Errorf("%d requests go on after a minute", n)
		}
	})
}

// A caller that leaves before a retry gets the wait that the service asked for.
func TestLoaderTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{header: http.Header{"Retry-After": {"20"}}, fail: func(n int64) int { return map[int64]int{1: 500}[n] }}
		l := loader(t, s, bins.LoaderOptions{})
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := loadWithin(t, l, time.Minute, "411111"); err != nil {
				t.Error(err)
			}
		})
		_, err := loadWithin(t, l, time.Second, "422222") // in the same request
		if failed, ok := errors.AsType[*bins.Error](err); !ok || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, bins.ErrServer) || failed.RetryAfter != 20*time.Second {
			t.Errorf("%v", err)
		}
		callers.Wait()
	})
}
