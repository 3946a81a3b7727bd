package bins_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
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

// A caller that gives up must not take the answer of the others with it.
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
		l := loader(t, s, bins.LoaderOptions{})
		for _, patience := range []time.Duration{time.Millisecond, time.Second} { // before and after it was sent
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, err := l.Load(ctx, "411111")
			cancel()
			synctest.Wait()
			if !errors.Is(err, context.DeadlineExceeded) || s.inFlight.Load() != 0 {
				t.Errorf("%v, %d requests left", err, s.inFlight.Load())
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
