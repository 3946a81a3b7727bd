package bins_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// While the service fails or refuses, as after the API key was revoked, or sends an error in place of the card, a stale
// result that is loaded again and again does not ask each time.
func TestLoaderRenewsLessWhileTheServiceFails(t *testing.T) {
	for _, failure := range []int{200, 400, 401, 404, 413, 500, 503} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 10 * time.Millisecond}
			memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Minute, StaleFor: time.Hour, NegativeTTL: -1})
			l := loader(t, s, bins.LoaderOptions{Memory: memory}, bins.WithMaxRetries(0))
			if _, err := l.Load(t.Context(), "411111"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			s.change(func() {
				s.status = failure
				s.answer = func(card string) (map[string]any, bool) {
					return map[string]any{"bin": card, "error": "upstream timeout"}, true
				}
			})
			before := s.requests.Load()
			for range 1000 {
				if r, err := l.Load(t.Context(), "411111"); err != nil || !r.Stale {
					t.Fatal(r, err)
				}
				time.Sleep(10 * time.Millisecond)
			}
			if n := s.requests.Load() - before; n < 4 || n > 12 {
				t.Errorf("%d: %d renewals in 10 seconds", failure, n)
			}
			time.Sleep(time.Second) // until the last of them has ended
		})
	}
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
