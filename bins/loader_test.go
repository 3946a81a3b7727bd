package bins_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

func loader(t *testing.T, s *service, o bins.LoaderOptions, opts ...bins.Option) *bins.Loader {
	t.Helper()
	l, err := bins.NewLoader(s.client(t, opts...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestLoaderBatchesConcurrentLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: 20 * time.Millisecond, reorder: true}
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

// Callers that wait for the same card each get a result of their own.
func TestLoadedResultsAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loader(t, &service{answer: func(card string) (map[string]any, bool) {
			return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"networkfees": map[string]any{"fee": 1}}}}, true
		}}, bins.LoaderOptions{})
		results := make([]bins.Result, 2)
		var callers sync.WaitGroup
		for i := range results {
			callers.Go(func() {
				var err error
				if results[i], err = l.Load(t.Context(), "411111"); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		results[0].Data.Card.NetworkFees[0] = 'x'
		if fees := results[1].Data.Card.NetworkFees; string(fees) != `{"fee":1}` {
			t.Errorf("the other caller has %s", fees)
		}
	})
}

// A request that is full does not wait for its window to pass.
func TestLoaderSendsAFullRequestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Window: time.Second})
		began := time.Now()
		if err := errors.Join(loadAll(t, l, slices.Collect(numbered(bins.MaxCards))...)...); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 0 || s.requests.Load() != 1 {
			t.Errorf("%v, %d requests", took, s.requests.Load())
		}
	})
}

// A card is asked for once, in whatever order the calls and the response come: a call that does
// not find it in memory joins its request, or finds the result after all.
func TestLoaderAsksForACardOnce(t *testing.T) {
	const cards = 300
	s := &service{}
	l := loader(t, s, bins.LoaderOptions{Window: -1})
	for card := range numbered(cards) {
		if err := errors.Join(loadAll(t, l, slices.Repeat([]string{card}, 8)...)...); err != nil {
			t.Error(err)
		}
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

// A caller that gives up does not end the request of the others.
func TestLoaderCallersEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: time.Second}
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

// A request waits for as long as one of its callers does, whoever came first.
func TestLoaderWaitsForItsMostPatientCaller(t *testing.T) {
	const patient = 10 * time.Second
	for name, test := range map[string]struct {
		patience time.Duration // 0: without a deadline
		joins    time.Duration // after the other caller
	}{
		"at once, without a deadline": {0, 0},
		"at once":                     {patient, 0},
		"while the request waits":     {patient, 50 * time.Millisecond},
		"then, without a deadline":    {0, 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			token := bins.TokenFunc(func(ctx context.Context) (string, error) { return "key-1", takes(200 * time.Millisecond)(ctx) })
			l := loader(t, &service{}, bins.LoaderOptions{}, bins.WithTokenSource(token))
			go func() {
				if _, err := loadWithin(t, l, 100*time.Millisecond, "411111"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: the impatient caller: %v", name, err)
				}
			}()
			time.Sleep(time.Microsecond + test.joins)
			var err error
			if test.patience > 0 {
				_, err = loadWithin(t, l, test.patience, "411111")
			} else {
				_, err = l.Load(t.Context(), "411111")
			}
			if err != nil {
				t.Errorf("%s: the patient caller: %v", name, err)
			}
		})
	}
}

func TestLoaderEndsARequestThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{})
		works(t, l)
		s.change(func() { s.latency = 5 * time.Second })
		detach(t, s, l)
		for i, patience := range []time.Duration{time.Millisecond, time.Second} { // before and after it was sent
			_, err := loadWithin(t, l, patience, "411111")
			time.Sleep(10 * time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) || s.requests.Load() != worked+detached+int64(i) || s.inFlight.Load() != detached {
				t.Errorf("%v, %d requests, %d of them left", err, s.requests.Load(), s.inFlight.Load())
			}
		}
		if _, err := l.Load(t.Context(), "411111"); err != nil {
			t.Errorf("a later caller: %v", err)
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
	s.change(func() { s.answer = func(string) (map[string]any, bool) { return nil, false } })
	if _, err := l.Load(t.Context(), "422222"); !errors.Is(err, bins.ErrMissing) {
		t.Errorf("error = %v, want missing", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Load(ended, "433333"); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}

// detached is how many requests a loader continues without waiting callers.
const detached = 16

// worked is how many loads show a loader that the service works.
const worked = 4

func works(t *testing.T, l *bins.Loader) {
	t.Helper()
	for i := range worked {
		if _, err := l.Load(t.Context(), fmt.Sprintf("5%05d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

// detach starts that many requests and leaves them. They ask for card numbers, which are not
// cached.
func detach(t *testing.T, s *service, l *bins.Loader) {
	t.Helper()
	for i := range detached {
		if _, err := loadWithin(t, l, 5*time.Millisecond, fmt.Sprintf("41111111111111%02d", i)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	if n := s.inFlight.Load(); n != detached {
		t.Fatalf("%d requests go on", n)
	}
}

// loadWithin loads a card with a timeout.
func loadWithin(t *testing.T, l *bins.Loader, patience time.Duration, card string) (bins.Result, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return l.Load(ctx, card)
}

// A request that its callers left is finished, and its result kept. So if the service is never quick enough, only the
// first call for each card fails.
func TestLoaderLearnsFromWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cards = 100
		s := &service{latency: 120 * time.Millisecond}
		l := loader(t, s, bins.LoaderOptions{})
		for _, succeed := range []int{0, cards} {
			succeeded := 0
			for i := range cards {
				if _, err := loadWithin(t, l, 80*time.Millisecond, fmt.Sprintf("4%07d", i)); err == nil {
					succeeded++
				}
				time.Sleep(10 * time.Millisecond)
			}
			if succeeded != succeed {
				t.Errorf("%d of %d loads succeeded, want %d", succeeded, cards, succeed)
			}
		}
		if got, want := l.Stats(), (bins.LoaderStats{Loads: 2 * cards, Hits: cards, Requests: cards}); got != want || s.requests.Load() != cards {
			t.Errorf("stats %+v, want %+v, after %d requests", got, want, s.requests.Load())
		}
	})
}

// Whoever waits is seen.
func TestLoaderStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		limited := limiterFunc(func(ctx context.Context) error {
			if s.inFlight.Load() > 0 {
				return takes(time.Minute)(ctx)
			}
			return nil
		})
		l := loader(t, s, bins.LoaderOptions{}, bins.WithLimiter(limited))
		works(t, l)
		s.change(func() { s.latency = time.Minute })
		for i := range 3 {
			for range 2 {
				go func() { _, _ = l.Load(t.Context(), fmt.Sprintf("4%07d", i)) }()
			}
			time.Sleep(10 * time.Millisecond)
		}
		if stats := l.Stats(); stats.InFlight != 1 || stats.Waiting != 4 {
			t.Errorf("stats %+v", stats)
		}
	})
}

// A limited number of requests continues without callers, and none of them is retried.
func TestLoaderDetachesFewAndRetriesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Window: -1})
		works(t, l)
		s.change(func() { s.latency, s.status = 200*time.Millisecond, http.StatusServiceUnavailable })
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context()) // without a deadline that would end the retries, too
			time.AfterFunc(5*time.Millisecond, cancel)
			_, _ = l.Load(ctx, fmt.Sprintf("4%05d", i))
		}
		synctest.Wait()
		if n := s.inFlight.Load(); n != detached {
			t.Errorf("%d requests go on", n)
		}
		time.Sleep(time.Minute)
		if n := s.requests.Load(); n != worked+20 || s.inFlight.Load() != 0 {
			t.Errorf("%d requests, %d in flight", n, s.inFlight.Load())
		}
	})
}

// A caller that joins a request without callers asks again if that request fails.
func TestLoaderAsksAnewAfterADetachedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: 200 * time.Millisecond,
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

type traceKey struct{}

// The request has the context values of its first caller.
func TestLoaderKeepsTheFirstCallersTrace(t *testing.T) {
	var trace any
	l := loader(t, &service{}, bins.LoaderOptions{}, bins.WithTokenSource(bins.TokenFunc(func(ctx context.Context) (string, error) {
		trace = ctx.Value(traceKey{})
		return "token", nil
	})))
	if _, err := l.Load(context.WithValue(t.Context(), traceKey{}, "span"), "411111"); err != nil || trace != "span" {
		t.Errorf("%v, the trace is %v", err, trace)
	}
}
