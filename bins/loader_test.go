package bins_test

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

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

func loader(t *testing.T, s *service, o bins.LoaderOptions) *bins.Loader {
	t.Helper()
	l, err := bins.NewLoader(s.client(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLoaderBatchesConcurrentLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return 20 * time.Millisecond }, reorder: true}
		l := loader(t, s, bins.LoaderOptions{})
		var callers sync.WaitGroup
		for i := range 1000 {
			callers.Go(func() {
				card := fmt.Sprintf("4%07d", i%100)
				r, err := l.Load(t.Context(), card)
				if err != nil || r.Data.Card.CardBrand != "of "+card {
					t.Errorf("%s: %v, %v", card, r, err)
				}
			})
		}
		callers.Wait()
		if s.requests.Load() != 2 || s.cards.Load() != 100 {
			t.Errorf("%d requests of %d cards, want 2 of 100", s.requests.Load(), s.cards.Load())
		}
		if _, err := l.Load(t.Context(), "40000001"); err != nil || s.requests.Load() != 2 {
			t.Errorf("a known card took a request, or %v", err)
		}
	})
}

// A request that is full does not wait for its window to pass.
func TestLoaderSendsAFullRequestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Window: time.Second})
		began := time.Now()
		var callers sync.WaitGroup
		for i := range bins.MaxCards {
			callers.Go(func() {
				if _, err := l.Load(t.Context(), fmt.Sprintf("4%07d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(began); took != 0 || s.requests.Load() != 1 {
			t.Errorf("%v, %d requests", took, s.requests.Load())
		}
	})
}

// A card is asked for once, however the calls for it and its response interleave: a call
// that did not find it in memory finds the request for it, or its result after all.
func TestLoaderAsksForACardOnce(t *testing.T) {
	const cards = 1000
	s := &service{}
	l := loader(t, s, bins.LoaderOptions{Window: -1})
	for i := range cards {
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if _, err := l.Load(t.Context(), fmt.Sprintf("4%07d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
	if n := s.requests.Load(); n != cards {
		t.Errorf("%d requests for %d cards", n, cards)
	}
}

func TestLoaderKeepsALoneCallerForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for window, want := range map[time.Duration]time.Duration{
			0: 2 * time.Millisecond, 5 * time.Millisecond: 5 * time.Millisecond, -1: 0,
		} {
			l := loader(t, &service{}, bins.LoaderOptions{Window: window})
			begin := time.Now()
			if _, err := l.Load(t.Context(), "411111"); err != nil || time.Since(begin) != want {
				t.Errorf("window %v: %v after %v", window, err, time.Since(begin))
			}
		}
	})
}

// A caller that gives up must not take the result of the others with it.
func TestLoaderCallersEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return time.Second }}
		l := loader(t, s, bins.LoaderOptions{})
		var callers sync.WaitGroup
		callers.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := l.Load(ctx, "411111")
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 100*time.Millisecond {
				t.Errorf("the impatient caller: %v after %v", err, time.Since(begin))
			}
		})
		callers.Go(func() {
			if _, err := l.Load(t.Context(), "411111"); err != nil {
				t.Errorf("the patient caller: %v", err)
			}
		})
		callers.Wait()
		if s.requests.Load() != 1 {
			t.Errorf("%d requests", s.requests.Load())
		}
	})
}

func TestLoaderEndsARequestThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return 5 * time.Second }}
		l := loader(t, s, bins.LoaderOptions{MaxDetached: -1})
		for i, patience := range []time.Duration{time.Millisecond, time.Second} { // before and after it was sent
			_, err := loadWithin(t, l, patience, "411111")
			synctest.Wait()
			if !errors.Is(err, context.DeadlineExceeded) || s.requests.Load() != int64(i) || s.inFlight.Load() != 0 {
				t.Errorf("%v, %d requests, of which %d are left", err, s.requests.Load(), s.inFlight.Load())
			}
		}
		if _, err := l.Load(t.Context(), "411111"); err != nil {
			t.Errorf("whoever comes afterwards: %v", err)
		}
	})
}

func TestLoaderPassesFailuresOn(t *testing.T) {
	s := &service{fail: func(n int64) int { return map[int64]int{1: http.StatusForbidden}[n] }}
	l := loader(t, s, bins.LoaderOptions{Window: -1})
	if _, err := l.Load(t.Context(), "411111"); !errors.Is(err, bins.ErrForbidden) {
		t.Errorf("error = %v", err)
	}
	if _, err := l.Load(t.Context(), "411111"); err != nil {
		t.Errorf("a failure was kept: %v", err)
	}
	s.answer = func(string) (map[string]any, bool) { return nil, false }
	if _, err := l.Load(t.Context(), "422222"); !errors.Is(err, bins.ErrMissing) {
		t.Errorf("error = %v, want missing", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Load(ended, "433333"); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}

func TestLoaderRefusesUnusableUse(t *testing.T) {
	var zero bins.Loader
	if _, err := zero.Load(t.Context(), "411111"); !errors.Is(err, bins.ErrInvalidArgument) {
		t.Errorf("zero loader: %v", err)
	}
	if _, err := bins.NewLoader(nil, bins.LoaderOptions{}); !errors.Is(err, bins.ErrInvalidArgument) {
		t.Errorf("nil client: %v", err)
	}
	if _, err := bins.NewLoader((&service{}).client(t), bins.LoaderOptions{PrefixLength: -1}); !errors.Is(err, bins.ErrInvalidArgument) {
		t.Errorf("negative prefix: %v", err)
	}
	var none context.Context
	if _, err := loader(t, &service{}, bins.LoaderOptions{}).Load(none, "411111"); !errors.Is(err, bins.ErrInvalidArgument) {
		t.Errorf("nil context: %v", err)
	}
}

// loadWithin loads a card with so much patience.
func loadWithin(t *testing.T, l *bins.Loader, patience time.Duration, card string) (bins.Result, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return l.Load(ctx, card)
}

// A request that was paid for is finished and kept: with a service slower than its
// callers, the first fails and no other.
func TestLoaderLearnsFromWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return 200 * time.Millisecond }}
		l := loader(t, s, bins.LoaderOptions{})
		failed := 0
		for range 20 {
			if _, err := loadWithin(t, l, 150*time.Millisecond, "45717360"); err != nil {
				failed++
			}
			time.Sleep(time.Second)
		}
		if failed != 1 || s.requests.Load() != 1 {
			t.Errorf("%d of 20 loads failed, with %d requests", failed, s.requests.Load())
		}
		if got, want := l.Stats(), (bins.LoaderStats{Loads: 20, Hits: 19, Requests: 1}); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
	})
}

// As many go on as are allowed, and are not retried.
func TestLoaderDetachesFewAndRetriesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func() time.Duration { return 200 * time.Millisecond },
			fail:    func(int64) int { return http.StatusServiceUnavailable },
		}
		l := loader(t, s, bins.LoaderOptions{MaxDetached: 3, Window: -1})
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() { _, _ = loadWithin(t, l, 150*time.Millisecond, fmt.Sprintf("4%05d", i)) })
			time.Sleep(time.Microsecond) // each has a request of its own
		}
		callers.Wait()
		synctest.Wait()
		if n := s.inFlight.Load(); n != 3 {
			t.Errorf("%d requests go on", n)
		}
		time.Sleep(time.Minute)
		if n := s.requests.Load(); n != 10 || s.inFlight.Load() != 0 {
			t.Errorf("%d requests, %d in flight", n, s.inFlight.Load())
		}
	})
}

// Whoever joins a request that nobody waited for asks anew if that fails.
func TestLoaderAsksAnewAfterADetachedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func() time.Duration { return 200 * time.Millisecond },
			fail:    func(n int64) int { return map[int64]int{1: http.StatusServiceUnavailable}[n] },
		}
		l := loader(t, s, bins.LoaderOptions{})
		if _, err := loadWithin(t, l, 150*time.Millisecond, "411111"); err == nil {
			t.Fatal("no error")
		}
		if _, err := loadWithin(t, l, 10*time.Second, "411111"); err != nil || s.requests.Load() != 2 {
			t.Errorf("%v after %d requests", err, s.requests.Load())
		}
	})
}

// At its deadline a load tells what the request has met.
func TestLoaderTellsTheCause(t *testing.T) {
	for name, test := range map[string]struct {
		fault binstest.Fault
		kind  error
	}{
		"503":     {binstest.Fault{Status: 503}, bins.ErrServer},
		"429":     {binstest.Fault{Status: 429, RetryAfter: time.Second}, bins.ErrRateLimited},
		"refused": {binstest.Fault{Refuse: true}, bins.ErrNoResponse},
		"nothing": {binstest.Fault{HeaderDelay: time.Second}, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := binstest.NewServer(t)
			fake.ScriptFunc(func(binstest.Request) binstest.Fault { return test.fault })
			// With fewer retries, they can all be over in that time: the waits are random.
			l, err := bins.NewLoader(fake.Client(bins.WithMaxRetries(10)), bins.LoaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = loadWithin(t, l, 150*time.Millisecond, "411111")
			e, ok := errors.AsType[*bins.Error](err)
			if !ok || !errors.Is(err, test.kind) || !errors.Is(err, context.DeadlineExceeded) || e.Attempts < 1 ||
				e.Operation != "load" || e.StatusCode != test.fault.Status {
				t.Errorf("%s: %v: %+v", name, err, e)
			}
			time.Sleep(time.Minute) // what goes on comes to its end
		})
	}
}

type traceKey struct{}

// The first caller's trace goes on in the request, and its end does not end it.
func TestLoaderKeepsTheFirstCallersTrace(t *testing.T) {
	var trace any
	s := &service{}
	client := s.client(t, bins.WithTokenSource(bins.TokenFunc(func(ctx context.Context) (string, error) {
		trace = ctx.Value(traceKey{})
		return "token", nil
	})))
	l, err := bins.NewLoader(client, bins.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(context.WithValue(t.Context(), traceKey{}, "span"), "411111"); err != nil || trace != "span" {
		t.Errorf("%v, the trace is %v", err, trace)
	}
}

// Through an outage of half an hour, every card that was known is served at once, and
// marked. Afterwards it is renewed behind the caller.
func TestLoaderServesStaleResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := &service{fail: func(int64) int {
			if down.Load() {
				return http.StatusServiceUnavailable
			}
			return 0
		}}
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
		down.Store(true)
		for range 30 {
			if !load(l).Stale {
				t.Error("an old result is not marked")
			}
			time.Sleep(time.Minute)
		}
		if n := s.requests.Load(); n < 10 || n > 130 {
			t.Errorf("%d requests in the outage", n)
		}
		down.Store(false)
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

// While the service fails, stale results are renewed after a second, then two, and so on;
// what callers give up says nothing of the service.
func TestLoaderRenewsLessWhileTheServiceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 0
		s := &service{latency: func() time.Duration { return 10 * time.Millisecond }, fail: func(int64) int { return status }}
		memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Minute, StaleFor: time.Hour})
		l, err := bins.NewLoader(s.client(t, bins.WithMaxRetries(0)), bins.LoaderOptions{Memory: memory, MaxDetached: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Load(t.Context(), "411111"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := loadWithin(t, l, time.Millisecond, "422222"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
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
		status = http.StatusServiceUnavailable
		if n := renewals(); n != 4 { // at once, and after 1, 3 and 7 seconds
			t.Errorf("%d renewals in 10 seconds", n)
		}
	})
}
