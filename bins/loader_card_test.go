package bins_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

const badCard = "49999999"

// beside is a service that answers requests for the bad card with a status, or never if it is 0. sizes
// gets the number of cards of each request.
func beside(status int, sizes *[]int) *service {
	s := &service{}
	s.refuse = func(body string) int {
		*sizes = append(*sizes, strings.Count(body, `"card":`))
		s.latency = 50 * time.Millisecond
		switch {
		case !strings.Contains(body, badCard):
			return 0
		case status == 0:
			s.latency = time.Hour
		}
		return status
	}
	return s
}

// loadAll loads cards at once, and returns the errors in their order.
func loadAll(t *testing.T, l *bins.Loader, cards ...string) []error {
	t.Helper()
	failed := make([]error, len(cards))
	var callers sync.WaitGroup
	for i, card := range cards {
		callers.Go(func() { _, failed[i] = loadWithin(t, l, 20*time.Second, card) })
	}
	callers.Wait()
	return failed
}

// A card that the service always fails for has no other without data, and goes alone for a minute.
func TestLoaderBesideABadCard(t *testing.T) {
	for _, test := range []struct {
		status   int
		is       error
		together int // requests before each card goes alone
		alone    int // requests for the bad card then
	}{
		{http.StatusBadRequest, bins.ErrBadRequest, 1, 1},
		{http.StatusUnprocessableEntity, bins.ErrBadRequest, 1, 1},
		{http.StatusRequestEntityTooLarge, bins.ErrTooLarge, 1, 1},
		{http.StatusInternalServerError, bins.ErrServer, 2, 3},
		{0, bins.ErrTimeout, 2, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			l := loader(t, beside(test.status, &sizes), bins.LoaderOptions{}, bins.WithAttemptTimeout(time.Second))
			check := func(name string, requests, largest int, cards ...string) {
				t.Helper()
				sizes = nil
				for i, err := range loadAll(t, l, cards...) {
					if cards[i] == badCard && !errors.Is(err, test.is) || cards[i] != badCard && err != nil {
						t.Errorf("%d, %s: card %d: %v", test.status, name, i, err)
					}
				}
				if len(sizes) != requests || slices.Max(sizes) != largest {
					t.Errorf("%d, %s: requests of %v cards, want %d", test.status, name, sizes, requests)
				}
			}
			check("at first", test.together+2+test.alone, 3, "40000001", badCard, "40000002")
			check("within a minute", 1+test.alone, 2, badCard, "40000003", "40000004")
			time.Sleep(time.Minute)
			check("a minute later", test.together+1+test.alone, 2, badCard, "40000005")
		})
	}
}

// No card is to blame for what every request would get.
func TestLoaderKeepsCardsTogether(t *testing.T) {
	for _, status := range []int{401, 403, 404, 405, 407, 410, 429, 503} {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			l := loader(t, beside(status, &sizes), bins.LoaderOptions{})
			for _, err := range loadAll(t, l, "40000001", badCard, "40000002") {
				if failed, ok := errors.AsType[*bins.Error](err); !ok || failed.StatusCode != status {
					t.Errorf("%d: %v", status, err)
				}
			}
			for _, n := range sizes {
				if n != 3 {
					t.Errorf("%d: requests of %v cards", status, sizes)
				}
			}
		})
	}
}

// Close ends loads that wait for a window, a cache, a token or a response, and leaves nothing behind.
func TestLoaderClose(t *testing.T) {
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	var gets atomic.Int64
	cache := &sharedCache{get: func(ctx context.Context) error {
		gets.Add(1)
		defer gets.Add(-1)
		_ = hangs(ctx)
		time.Sleep(time.Millisecond)
		return ctx.Err()
	}}
	for name, o := range map[string]bins.LoaderOptions{
		"window":   {Window: time.Hour},
		"cache":    {Cache: cache},
		"token":    {},
		"response": {},
		"retry":    {},
		"nothing":  {},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: time.Hour}
			switch name {
			case "nothing":
				s.latency = 0
			case "retry":
				s.latency, s.status = 0, http.StatusServiceUnavailable
			}
			source := bins.TokenFunc(func(ctx context.Context) (string, error) {
				if name == "token" {
					return "", hangs(ctx)
				}
				return "token", nil
			})
			l := loader(t, s, o, bins.WithTokenSource(source), bins.WithRetryWait(time.Hour, time.Hour))
			var callers sync.WaitGroup
			for i := range 3 {
				callers.Go(func() {
					_, err := loadWithin(t, l, 24*time.Hour, fmt.Sprint(41111111+i))
					if want := name != "nothing"; errors.Is(err, bins.ErrClosed) != want {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			l.Close()
			if n := s.inFlight.Load() + gets.Load(); n != 0 || time.Since(began) > time.Second {
				t.Errorf("%s: %d calls go on after %v", name, n, time.Since(began))
			}
			callers.Wait()
			if _, err := l.Load(t.Context(), "41111111"); !errors.Is(err, bins.ErrClosed) {
				t.Errorf("%s: afterwards: %v", name, err)
			}
			l.Close()
		}) // fails if a goroutine is left
	}
}
