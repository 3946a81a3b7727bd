package bins_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// In an outage of half an hour, a known card is served at once and marked. Afterwards it is
// renewed in the background.
func TestLoaderServesStaleResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		load := func(l *bins.Loader) bins.Result {
			began := time.Now()
			r, err := loadWithin(t, l, 150*time.Millisecond, "411111")
			if err != nil || r.Data.Card.CardBrand != "of 411111" || time.Since(began) > 2*time.Millisecond {
				t.Fatalf("%v, %v after %v", r, err, time.Since(began))
			}
			return r
		}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: time.Minute, StaleFor: time.Hour})})
		if load(l).Stale {
			t.Error("a new result is stale")
		}
		time.Sleep(time.Minute)
		s.change(func() { s.status = http.StatusServiceUnavailable })
		for range 30 {
			if !load(l).Stale {
				t.Error("an old result is not marked")
			}
			time.Sleep(time.Minute)
		}
		if n := s.requests.Load(); n < 10 || n > 130 {
			t.Errorf("%d requests in the outage", n)
		}
		s.change(func() { s.status = 0 })
		time.Sleep(time.Minute)
		load(l)
		time.Sleep(time.Second)
		if load(l).Stale {
			t.Error("a stale result was not renewed")
		}
		time.Sleep(2 * time.Hour)
		requests := s.requests.Load()
		if load(l).Stale || s.requests.Load() != requests+1 {
			t.Error("a result beyond StaleFor was served")
		}
		if stats := l.Stats(); stats.Stale < 31 || stats.Hits < stats.Stale {
			t.Errorf("stats %+v", stats)
		}
	})
}

// While the service fails or refuses, as after the API key was revoked, a stale result that is loaded
// again and again does not ask each time.
func TestLoaderRenewsLessWhileTheServiceFails(t *testing.T) {
	for _, failure := range []int{400, 401, 404, 413, 500, 503} {
		renewsLess(t, failure)
	}
}

func renewsLess(t *testing.T, failure int) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: 10 * time.Millisecond}
		memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Minute, StaleFor: time.Hour})
		l := loader(t, s, bins.LoaderOptions{Memory: memory}, bins.WithMaxRetries(0))
		if _, err := l.Load(t.Context(), "411111"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		renewals := func() int64 {
			before := s.requests.Load()
			for range 1000 {
				if r, err := l.Load(t.Context(), "411111"); err != nil || !r.Stale {
					t.Fatal(r, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			return s.requests.Load() - before
		}
		s.change(func() { s.status = failure })
		if n := renewals(); n < 4 || n > 12 {
			t.Errorf("%d: %d renewals in 10 seconds", failure, n)
		}
		time.Sleep(time.Second) // until the last of them has ended
	})
}

// Nothing is renewed while as many requests as may go on without callers do.
func TestLoaderRenewsBehindCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: time.Minute, StaleFor: time.Hour})})
		works(t, l)
		time.Sleep(time.Minute)
		s.change(func() { s.latency = 5 * time.Second })
		detach(t, s, l)
		for _, renewals := range []int64{0, 1} {
			before := s.requests.Load()
			if r, err := l.Load(t.Context(), "500000"); err != nil || !r.Stale {
				t.Fatal(r, err)
			}
			time.Sleep(time.Second)
			if n := s.requests.Load() - before; n != renewals {
				t.Errorf("%d renewals, want %d", n, renewals)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
