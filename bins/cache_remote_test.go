package bins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// deaf is a cache that hangs, and does not heed its context.
type deaf struct {
	calls   atomic.Int64
	hanging atomic.Int64
	release chan struct{}
}

func (c *deaf) hang() error {
	c.calls.Add(1)
	c.hanging.Add(1)
	defer c.hanging.Add(-1)
	<-c.release
	return nil
}

func (c *deaf) Get(context.Context, []string) (map[string][]byte, error) { return nil, c.hang() }
func (c *deaf) Set(context.Context, map[string][]byte, time.Duration) error {
	return c.hang()
}

// A cache that hangs costs a share of the caller's time once, and one goroutine.
func TestHungCacheIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &deaf{release: make(chan struct{})}
		l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1})
		began := time.Now()
		for i := range 20 {
			if _, err := loadWithin(t, l, 150*time.Millisecond, fmt.Sprint(411111+i)); err != nil {
				t.Errorf("load %d: %v", i, err)
			}
		}
		if took := time.Since(began); took != 15*time.Millisecond || cache.hanging.Load() != 1 {
			t.Errorf("20 loads took %v, %d goroutines hang", took, cache.hanging.Load())
		}
		time.Sleep(time.Hour) // beyond every pause, and still it hangs
		began = time.Now()
		if _, err := l.Load(t.Context(), "422222"); err != nil || time.Since(began) != 0 || cache.calls.Load() != 1 {
			t.Errorf("%v after %v and %d calls", err, time.Since(began), cache.calls.Load())
		}
		close(cache.release)
	})
}

// LookupAll waits for a hung cache no longer, and never on the goroutine of its loop.
func TestHungCacheHoldsUpNoBulkLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &deaf{release: make(chan struct{})}
		s := &service{latency: func() time.Duration { return 20 * time.Millisecond }}
		began, results := time.Now(), 0
		for _, err := range s.client(t).LookupAll(t.Context(), numbered(2000), bins.BulkOptions{Cache: cache}) {
			if err != nil {
				t.Fatal(err)
			}
			results++
		}
		if took := time.Since(began); results != 2000 || took > 200*time.Millisecond || cache.hanging.Load() != 1 {
			t.Errorf("%d results took %v, %d goroutines hang", results, took, cache.hanging.Load())
		}
		close(cache.release)
	})
}

// failing is a cache that fails as long as it is down.
type failing struct {
	*sharedCache
	calls []time.Time
}

func (c *failing) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	c.mu.Lock()
	c.calls = append(c.calls, time.Now())
	c.mu.Unlock()
	return c.sharedCache.Get(ctx, keys)
}

// A cache that failed is skipped for a second, then two, and so on to 30.
func TestFailedCacheIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &failing{sharedCache: &sharedCache{values: map[string][]byte{}, broken: true}}
		l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1})
		for i := range 3000 {
			if _, err := l.Load(t.Context(), fmt.Sprint(411111+i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		var waits []time.Duration
		for i := 1; i < len(cache.calls); i++ {
			waits = append(waits, cache.calls[i].Sub(cache.calls[i-1]).Round(time.Second))
		}
		want := "[1s 2s 4s 8s 16s 30s 30s 30s 30s 30s 30s 30s 30s]"
		if got := fmt.Sprint(waits); got != want {
			t.Errorf("skipped for %v, want %v", got, want)
		}
		cache.mu.Lock()
		cache.broken = false
		cache.mu.Unlock()
		time.Sleep(30 * time.Second)
		calls := len(cache.calls)
		for i := range 10 {
			if _, err := l.Load(t.Context(), fmt.Sprint(511111+i)); err != nil {
				t.Fatal(err)
			}
		}
		if len(cache.calls) != calls+10 {
			t.Errorf("%d calls of a cache that works", len(cache.calls)-calls)
		}
	})
}

// patient is a cache that takes its time, but no longer than its context.
type patient struct{ calls atomic.Int64 }

func (c *patient) Get(ctx context.Context, _ []string) (map[string][]byte, error) {
	c.calls.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
	return nil, ctx.Err()
}

func (c *patient) Set(context.Context, map[string][]byte, time.Duration) error { return nil }

// A caller that leaves while the cache is asked is no failure of the cache's.
func TestCacheIsNotSkippedForACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := &patient{}
		l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1, MaxDetached: -1})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, err := l.Load(ctx, "411111"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait() // the call of the cache ends by the same context, a moment later
		if _, err := l.Load(t.Context(), "422222"); err != nil || cache.calls.Load() != 2 {
			t.Errorf("%v after %d calls", err, cache.calls.Load())
		}
	})
}

// exploding is a cache that panics.
type exploding struct{ get, set bool }

func (c exploding) Get(context.Context, []string) (map[string][]byte, error) {
	if c.get {
		panic("get")
	}
	return nil, nil
}

func (c exploding) Set(context.Context, map[string][]byte, time.Duration) error {
	if c.set {
		panic("set")
	}
	return nil
}

// What Get panics with reaches those who wait for it. Nobody waits for Set.
func TestPanicsOfACache(t *testing.T) {
	for name, test := range map[string]struct {
		cache exploding
		want  any
	}{"get": {exploding{get: true}, "get"}, "set": {exploding{set: true}, nil}} {
		synctest.Test(t, func(t *testing.T) {
			recovered := func(f func()) (panicked any) {
				defer func() { panicked = recover() }()
				f()
				return nil
			}
			client := (&service{}).client(t)
			if got := recovered(func() {
				for _, err := range client.LookupAll(t.Context(), numbered(1), bins.BulkOptions{Cache: test.cache}) {
					if err != nil {
						t.Error(err)
					}
				}
			}); got != test.want {
				t.Errorf("%s: a bulk lookup panicked with %v", name, got)
			}
			l := loader(t, &service{}, bins.LoaderOptions{Cache: test.cache})
			var callers sync.WaitGroup
			for range 3 {
				callers.Go(func() {
					if got := recovered(func() { _, _ = l.Load(t.Context(), "411111") }); got != test.want {
						t.Errorf("%s: a load panicked with %v", name, got)
					}
				})
			}
			callers.Wait()
			synctest.Wait()
		})
	}
}

// No card number leaves for a cache, wherever the service states one, and the caller
// gets all of it.
func TestCacheIsGivenNoCardNumber(t *testing.T) {
	const number = "4929420573595709"
	card := func(members map[string]any) map[string]any {
		members["card_brand"] = "VISA"
		return map[string]any{"bin": "492942", "data": map[string]any{"card": members}}
	}
	var escaped strings.Builder
	for _, digit := range number {
		escaped.WriteString(fmt.Sprintf(`\u%04x`, digit))
	}
	named := card(map[string]any{"pan_or_token": number, "correlation_id": number})
	named["bin"] = number
	for name, test := range map[string]struct {
		item  map[string]any
		given bool
	}{
		"in bin, pan_or_token and correlation_id": {named, true},
		"in the bounds of its range": {card(map[string]any{
			"bin_min": number, "bin_max": number, "additional_card_brands": []any{map[string]any{"bin_min": number}},
		}), true},
		"in a phone number":           {card(map[string]any{"bank": map[string]any{"phone": number}}), true},
		"that fails Luhn's test":      {card(map[string]any{"bank": map[string]any{"name": "4929420573595"}}), true},
		"in a bank's name":            {card(map[string]any{"bank": map[string]any{"name": "of " + number}}), false},
		"behind a digit":              {card(map[string]any{"product": map[string]any{"product_id": "1" + number}}), false},
		"in full-width digits":        {card(map[string]any{"combo_card": "４９２９４２０５７３５９５７０９"}), false},
		"in fees":                     {card(map[string]any{"networkfees": map[string]any{"x": number}}), false},
		"in fees as a number":         {card(map[string]any{"networkfees": map[string]any{"x": int64(4929420573595709)}}), false},
		"in fees, escaped":            {card(map[string]any{"networkfees": json.RawMessage(`{"x":"` + escaped.String() + `"}`)}), false},
		"in an integer":               {card(map[string]any{"bin_length": int64(4929420573595709)}), false},
		"in a cap":                    {card(map[string]any{"cost": map[string]any{"interchange": map[string]any{"inter": map[string]any{"cap_type_name": number}}}}), false},
		"in the name of a brand":      {card(map[string]any{"additional_card_brands": []any{map[string]any{"card_brand": number}}}), false},
		"in an error beside the card": {map[string]any{"bin": "492942", "error": number, "data": map[string]any{"card": map[string]any{}}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			cache := &sharedCache{values: map[string][]byte{}}
			s := &service{answer: func(string) (map[string]any, bool) { return test.item, true }}
			r, err := loader(t, s, bins.LoaderOptions{Cache: cache}).Load(t.Context(), "tok_8f7e")
			if err != nil || r.BIN != test.item["bin"] {
				t.Errorf("%s: the caller gets %v, %v", name, r, err)
			}
			synctest.Wait()
			if given := len(cache.values) == 1; given != test.given {
				t.Errorf("%s: given to the cache: %v", name, given)
			}
			for key, value := range cache.values {
				for _, aside := range []string{`"bin_min":"` + number, `"bin_max":"` + number, `"phone":"` + number} {
					value = []byte(strings.ReplaceAll(string(value), aside, ""))
				}
				if strings.Contains(key+string(value), number) {
					t.Errorf("%s: the cache is given %s = %s", name, key, value)
				}
			}
		})
	}
}
