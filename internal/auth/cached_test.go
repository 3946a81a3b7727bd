package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// An issuer is a token endpoint. It issues the tokens t1, t2 and so on.
type issuer struct {
	lifetime, latency time.Duration // a lifetime of 0 never ends
	hangs             bool          // it ignores its context
	fails             atomic.Pointer[error]
	asked, busy, most atomic.Int64
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

// No call waits for a new token while the old one is valid, even if the endpoint is slow or
// fails. Instances that started together renew at different times.
func TestCachedTokenIsRenewedEarly(t *testing.T) {
	for name, i := range map[string]*issuer{
		"quick": {lifetime: time.Hour}, "slow": {lifetime: time.Hour, latency: 20 * time.Second}, "short": {lifetime: 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := Cached(i.fetch)
			if _, err := source.Token(t.Context()); err != nil {
				t.Fatal(err)
			}
			step := i.lifetime / 1000
			for range 5000 {
				time.Sleep(step)
				began := time.Now()
				token, err := source.Token(t.Context())
				if err != nil || time.Since(began) != 0 || token == "" {
					t.Fatalf("%s: %q, %v after %v", name, token, err, time.Since(began))
				}
			}
			if n := i.asked.Load(); n < 6 || n > 7 || i.most.Load() != 1 {
				t.Errorf("%s: fetched %d times in five lifetimes, %d at once", name, n, i.most.Load())
			}
			time.Sleep(time.Minute)
		})
	}
	times := map[time.Duration]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: time.Hour}
			source, began := Cached(i.fetch), time.Now()
			for i.asked.Load() < 2 {
				time.Sleep(time.Second)
				source.Token(t.Context())
			}
			times[time.Since(began)] = true
		})
	}
	if len(times) < 10 {
		t.Errorf("20 instances renew at %d different times", len(times))
	}
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{lifetime: time.Hour}
		source := Cached(i.fetch)
		source.Token(t.Context())
		down := errors.New("the endpoint is down")
		i.fails.Store(&down)
		for range 59 * 60 {
			time.Sleep(time.Second)
			if _, err := source.Token(t.Context()); err != nil {
				t.Errorf("a call sees a failed renewal: %v", err)
			}
			synctest.Wait()
		}
		if n := i.asked.Load(); n < 3 || n > 12 {
			t.Errorf("asked %d times in the last minutes", n)
		}
		time.Sleep(time.Minute)
		if _, err := source.Token(t.Context()); !errors.Is(err, down) {
			t.Errorf("after the end: %v", err)
		}
		i.fails.Store(nil)
		if _, err := source.Token(t.Context()); err != nil {
			t.Errorf("the failure stayed: %v", err)
		}
	})
}

// A call ends by its deadline. The fetch goes on, so that calls that are shorter than it get
// the token in the end. A fetch that hangs holds one goroutine, and ends after 30 seconds if
// it heeds its context.
func TestFetchOutlivesItsCallers(t *testing.T) {
	for _, test := range []struct {
		latency   time.Duration
		hangs     bool
		works     time.Duration // when the first call works; 0: none does
		mostAsked int64
	}{
		{300 * time.Millisecond, false, 400 * time.Millisecond, 1},
		{29 * time.Second, false, 29100 * time.Millisecond, 1},
		{10 * time.Second, true, 20100 * time.Millisecond, 1},
		{31 * time.Second, false, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: time.Hour, latency: test.latency, hangs: test.hangs}
			source := Cached(i.fetch)
			began, worked := time.Now(), time.Duration(0)
			for time.Since(began) < time.Minute && worked == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
				call := time.Now()
				if _, _, err := Ask(ctx, source, ""); err == nil {
					worked = time.Since(began)
				} else if !errors.Is(err, fault.ErrCredential) || time.Since(call) > 80*time.Millisecond {
					t.Errorf("%v: %v after %v", test.latency, err, time.Since(call))
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

// All calls share one fetch and one token, until it is refused. Of calls that are refused one after the
// other, only the first makes the source fetch another.
func TestCachedTokenIsShared(t *testing.T) {
	for _, lifetime := range []time.Duration{0, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			i := &issuer{lifetime: lifetime, latency: time.Second}
			source, refused := Cached(i.fetch), ""
			for round := range int64(3) {
				want := fmt.Sprint("t", round+1)
				var calls sync.WaitGroup
				for n := range 20 {
					calls.Go(func() {
						time.Sleep(time.Duration(n) * 200 * time.Millisecond)
						if token, _, err := Ask(t.Context(), source, refused); token != want || err != nil {
							t.Errorf("round %d: %q, %v", round, token, err)
						}
					})
				}
				calls.Wait()
				time.Sleep(time.Hour)
				if token, _, err := Ask(t.Context(), source, ""); token != want || err != nil || i.asked.Load() != round+1 {
					t.Errorf("round %d: %q, %v, fetched %d times", round, token, err, i.asked.Load())
				}
				refused = want
			}
		})
	}
}

// Printing a source shows no token.
func TestCachedTokenIsNotPrinted(t *testing.T) {
	source := Cached(func(context.Context) (string, time.Time, error) { return "canary", time.Time{}, nil })
	source.Token(t.Context())
	if text := fmt.Sprintf("%+v %#v", source, source); strings.Contains(text, "canary") {
		t.Error(text)
	}
}
