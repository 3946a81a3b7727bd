package bins_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A sharedCache is a cache outside the process. Its functions, if they are set, fail or delay a
// call, and change what Get has found.
type sharedCache struct {
	get, set func(ctx context.Context) error
	change   func(found map[string][]byte)
	mu       sync.Mutex
	values   map[string][]byte
	gets     []time.Time
}

func newSharedCache() *sharedCache { return &sharedCache{values: map[string][]byte{}} }

func (c *sharedCache) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	c.mu.Lock()
	c.gets = append(c.gets, time.Now())
	found := map[string][]byte{}
	for _, key := range keys {
		if value, ok := c.values[key]; ok {
			found[key] = slices.Clone(value)
		}
	}
	c.mu.Unlock()
	if c.change != nil {
		c.change(found)
	}
	if c.get != nil {
		return found, c.get(ctx)
	}
	return found, nil
}

func (c *sharedCache) Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error {
	if c.set != nil {
		if err := c.set(ctx); err != nil {
			return err
		}
	}
	if ttl <= 0 {
		return errors.New("a value without a ttl")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.values, values)
	return nil
}

// takes makes a call last, at most until ctx ends.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}

// Two lookups share every result, also the last ones, which are stored while the loop ends.
func TestSharedCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := &service{answer: ranged(8)}, newSharedCache()
		cache.set = takes(10 * time.Millisecond)
		for range 2 {
			for r, err := range s.client(t).LookupAll(t.Context(), numbered(120), bins.BulkOptions{Cache: cache}) {
				if err != nil || r.Err != nil || brand(r.Result) != "of "+r.Input.Reveal() {
					t.Fatalf("%v: %v", r, err)
				}
			}
		}
		if s.requests.Load() != 3 || len(cache.values) != 120 {
			t.Errorf("%d requests, %d values", s.requests.Load(), len(cache.values))
		}
	})
}

// A cache that hangs delays one caller, by a tenth of its time, and holds one goroutine.
func TestHungCacheIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hanging atomic.Int64
		cache, release := newSharedCache(), make(chan struct{})
		cache.get = func(context.Context) error { // ignores its context
			hanging.Add(1)
			defer hanging.Add(-1)
			<-release
			return nil
		}
		l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1})
		began := time.Now()
		for i := range 20 {
			if _, err := loadWithin(t, l, 150*time.Millisecond, fmt.Sprint(411111+i)); err != nil {
				t.Errorf("load %d: %v", i, err)
			}
		}
		if took := time.Since(began); took != 15*time.Millisecond || hanging.Load() != 1 {
			t.Errorf("20 loads took %v, %d goroutines hang", took, hanging.Load())
		}
		time.Sleep(time.Hour) // longer than the cache is skipped
		began = time.Now()
		if _, err := l.Load(t.Context(), "422222"); err != nil || time.Since(began) != 0 || len(cache.gets) != 1 {
			t.Errorf("%v after %v and %d calls", err, time.Since(began), len(cache.gets))
		}
		close(release)
	})
}

// A cache that failed is skipped for a second, then two, and so on to 30.
func TestFailedCacheIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, broken := newSharedCache(), true
		cache.get = func(context.Context) error {
			if broken {
				return errDown
			}
			return nil
		}
		l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1})
		for i := range 600 {
			if _, err := l.Load(t.Context(), fmt.Sprint(411111+i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		var waits []time.Duration
		for i := 1; i < len(cache.gets); i++ {
			waits = append(waits, cache.gets[i].Sub(cache.gets[i-1]).Round(time.Second))
		}
		want := "[1s 2s 4s 8s 16s 30s 30s 30s 30s 30s 30s 30s 30s]"
		if got := fmt.Sprint(waits); got != want {
			t.Errorf("skipped for %v, want %v", got, want)
		}
		broken = false
		time.Sleep(30 * time.Second)
		gets := len(cache.gets)
		for i := range 10 {
			if _, err := l.Load(t.Context(), fmt.Sprint(511111+i)); err != nil {
				t.Fatal(err)
			}
		}
		if len(cache.gets) != gets+10 {
			t.Errorf("%d calls of a cache that works", len(cache.gets)-gets)
		}
	})
}

// A value that was not stored under its key costs a request, and is not used.
func TestSpoiledValueIsNoResult(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	each := func(change func(value []byte) []byte) func(map[string][]byte) {
		return func(found map[string][]byte) {
			for key, value := range found {
				found[key] = change(value)
			}
		}
	}
	for name, change := range map[string]func(map[string][]byte){
		"under each other's key": func(found map[string][]byte) {
			keys := slices.Sorted(maps.Keys(found))
			first := found[keys[0]]
			for i, key := range keys[1:] {
				found[keys[i]] = found[key]
			}
			found[keys[len(keys)-1]] = first
		},
		"a flipped bit":  each(func(value []byte) []byte { value[rnd.IntN(len(value))] ^= 1 << rnd.IntN(8); return value }),
		"cut off":        each(func(value []byte) []byte { return value[:rnd.IntN(len(value))] }),
		"of a stranger":  each(func([]byte) []byte { return []byte(`{"data":{"card":{"card_brand":"VISA"}}}`) }),
		"a huge value":   each(func([]byte) []byte { return make([]byte, 1<<20) }),
		"of another key": func(found map[string][]byte) { clear(found); found["x"] = []byte("{}") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, cache := &service{}, newSharedCache()
			for i := range 3 {
				before := s.requests.Load()
				for r, err := range s.client(t).LookupAll(t.Context(), numbered(100), bins.BulkOptions{Cache: cache}) {
					if err != nil || r.Err != nil || brand(r.Result) != "of "+r.Input.Reveal() {
						t.Fatalf("%s: %v, %v", name, r, err)
					}
				}
				if n, want := s.requests.Load()-before, []int64{2, 0, 2}[i]; n != want {
					t.Errorf("%s: %d requests, want %d", name, n, want)
				}
				if i == 1 {
					cache.change = change
				}
			}
		})
	}
}

// A value carries its age. After the TTL it costs a request, even if the store has kept it longer.
// Within StaleFor it serves a process that starts during an outage.
func TestSharedValueKnowsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		version := "old"
		s := &service{
			answer: func(card string) (map[string]any, bool) {
				return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": version}}}, true
			},
			fail: func(int64) int {
				if down {
					return http.StatusServiceUnavailable
				}
				return 0
			},
		}
		cache := newSharedCache()
		start := func(staleFor time.Duration) *bins.Loader { // another process
			memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: staleFor})
			return loader(t, s, bins.LoaderOptions{Cache: cache, Memory: memory, Window: -1})
		}
		check := func(l *bins.Loader, want string) {
			t.Helper()
			r, err := loadWithin(t, l, time.Second, "411111")
			if got := fmt.Sprint(brand(r), " ", r.Stale); err != nil && want != "" || err == nil && got != want {
				t.Errorf("%s, %v, want %q", got, err, want)
			}
			time.Sleep(time.Second)
		}
		check(start(0), "old false")
		version = "new"
		check(start(0), "old false")
		time.Sleep(50 * time.Minute)
		l := start(0)
		check(l, "old false")
		time.Sleep(15 * time.Minute) // now older than the TTL
		check(l, "new false")
		down = true
		time.Sleep(2 * time.Hour)
		check(start(time.Hour), "") // too old by now
		for range 3 {
			check(start(10*time.Hour), "new true")
		}
		for r, err := range s.client(t).LookupAll(t.Context(), slices.Values([]string{"411111"}), bins.BulkOptions{
			Cache: cache, Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 10 * time.Hour}), GiveUpAfter: time.Minute,
		}) {
			if err == nil && (r.Err != nil || !r.Result.Stale || brand(r.Result) != "new") {
				t.Error(r)
			}
		}
		down, version = false, "newer"
		l = start(10 * time.Hour)
		check(l, "new true")
		check(l, "newer false")
		time.Sleep(365 * 24 * time.Hour)
		version = "newest"
		check(start(10*time.Hour), "newest false")
	})
}
