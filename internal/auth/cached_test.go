package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An issuer is a token endpoint. It issues the tokens t1, t2 and so on.
type issuer struct {
	lifetime, latency time.Duration
	fails             atomic.Pointer[error]
	asked, busy, most atomic.Int64
}

func (i *issuer) fetch(ctx context.Context) (string, time.Time, error) {
	n := i.asked.Add(1)
	i.most.Store(max(i.most.Load(), i.busy.Add(1)))
	defer i.busy.Add(-1)
	select {
	case <-time.After(i.latency):
	case <-ctx.Done():
		return "", time.Time{}, ctx.Err()
	}
	if err := i.fails.Load(); err != nil {
		return "", time.Time{}, *err
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

// Printing a source shows no token.
func TestCachedTokenIsNotPrinted(t *testing.T) {
	source := Cached(func(context.Context) (string, time.Time, error) { return "canary", time.Time{}, nil })
	source.Token(t.Context())
	if text := fmt.Sprintf("%+v %#v", source, source); strings.Contains(text, "canary") {
		t.Error(text)
	}
}
