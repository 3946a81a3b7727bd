package bins_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A queue lets so many requests pass at once.
type queue struct {
	http.RoundTripper
	places chan struct{}
}

func (q queue) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case q.places <- struct{}{}:
		defer func() { <-q.places }()
		return q.RoundTripper.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A checkout with a deadline gets its cards from a slow service, too. A queue gets fewer and larger requests
// after half a minute, and for good.
func TestLoaderAtSlowServices(t *testing.T) {
	for name, test := range map[string]struct {
		latency, deadline time.Duration
		places            int // what is too much waits there; 0: nothing is
		loads             int
		interval          time.Duration
		requests          int64 // at most
	}{
		"2.5 s":                 {2500 * time.Millisecond, 4 * time.Second, 0, 600, 8 * time.Millisecond, 600},
		"300 ms":                {300 * time.Millisecond, time.Second, 0, 500, 5 * time.Millisecond, 500},
		"a queue of ten places": {time.Second, 6 * time.Second, 10, 2500, 20 * time.Millisecond, 1200},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: test.latency}
			var network http.RoundTripper = s
			if test.places > 0 {
				network = queue{s, make(chan struct{}, test.places)}
			}
			l, err := bins.NewLoader(clientOver(t, network), bins.LoaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var loads sync.WaitGroup
			var mu sync.Mutex
			failed := map[string]int{}
			for i := range test.loads {
				begins := test.places > 0 && time.Duration(i)*test.interval < 30*time.Second // the first requests are too many
				loads.Go(func() {
					if _, err := loadWithin(t, l, test.deadline, fmt.Sprintf("4%07d", i)); err != nil && !begins {
						mu.Lock()
						defer mu.Unlock()
						failed[err.Error()]++
					}
				})
				time.Sleep(test.interval)
			}
			loads.Wait()
			if requests := s.requests.Load(); len(failed) > 0 || requests > test.requests {
				t.Errorf("%s: %v, %d requests", name, failed, requests)
			}
		})
	}
}

// A service that becomes many times slower is not down: within half a minute all loads succeed again.
func TestLoaderAtAServiceThatBecomesSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	for _, test := range []struct{ before, after, deadline time.Duration }{
		{5 * time.Millisecond, 60 * time.Millisecond, 80 * time.Millisecond},
		{30 * time.Millisecond, 2 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: test.before}
			l := loader(t, s, bins.LoaderOptions{})
			twice := func(n int) int { // 200 a second
				half := make(chan int)
				go func() { half <- checkouts(t, l, n/2, test.deadline) }()
				return checkouts(t, l, n/2, test.deadline) + <-half
			}
			if n := twice(2000); n != 2000 {
				t.Fatal(n)
			}
			s.change(func() { s.latency = test.after })
			first := twice(4000)
			line := fmt.Sprintf("%v to %v: %d of the first 4000 loads succeed", test.before, test.after, first)
			if first < 1600 { // 60 runs had 2,118
				t.Error(line)
			} else {
				t.Log(line)
			}
			if n := twice(2000); n != 2000 {
				t.Errorf("%v to %v: 20 seconds later %d of 2000 loads succeed", test.before, test.after, n)
			}
		})
	}
}

// One failed request costs the others nothing, however slow the service is. internal/flow has more.
func TestOneFailureAtASlowService(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	for _, latency := range []time.Duration{300 * time.Millisecond, 4 * time.Second, 8 * time.Second} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			newService := func() *service {
				return &service{latency: latency, fail: func(n int64) int {
					if n == 3 {
						return status
					}
					return 0
				}}
			}
			synctest.Test(t, func(t *testing.T) {
				l := loader(t, newService(), bins.LoaderOptions{})
				for i := range 5 {
					_, _ = loadWithin(t, l, 30*time.Second, fmt.Sprintf("5%07d", i))
				}
				var loads sync.WaitGroup
				var failed atomic.Int64
				for i := range 300 {
					loads.Go(func() {
						if _, err := loadWithin(t, l, 30*time.Second, fmt.Sprintf("4%07d", i)); err != nil {
							failed.Add(1)
						}
					})
					time.Sleep(50 * time.Millisecond)
				}
				if loads.Wait(); failed.Load() > 0 {
					t.Errorf("Loader, %v, %d: %d of 300 failed", latency, status, failed.Load())
				}
			})
			synctest.Test(t, func(t *testing.T) {
				const n, inFlight = 10_000, 16
				r := runBulk(t, newService().client(t), n, bins.BulkOptions{Concurrency: inFlight})
				if byHand := n / 50 / inFlight * latency; !r.isWhole(n) || r.took > byHand*5/4 {
					t.Errorf("LookupAll, %v, %d: %+v, by hand in %v", latency, status, r, byHand)
				}
			})
		}
	}
}

// A caller who takes his time with the results is no slow service.
func TestLookupAllForASlowCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, unhurried = 20_000, 10_000
		s := &service{latency: 50 * time.Millisecond}
		var resumed time.Time
		done := 0
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(n), bins.BulkOptions{}) {
			if err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if done++; done <= unhurried && done%50 == 0 {
				time.Sleep(200 * time.Millisecond)
				resumed = time.Now()
			}
		}
		if took := time.Since(resumed); took > 3*time.Second { // 1 s by hand
			t.Errorf("the last %d took %v", n-unhurried, took)
		}
	})
}
