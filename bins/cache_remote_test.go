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
// call, and spoil what Get has found. Once it is in use, they change only in change.
type sharedCache struct {
	get, set func(ctx context.Context) error
	spoil    func(found map[string][]byte)
	mu       sync.Mutex
	values   map[string][]byte
	gets     []time.Time
}

func newSharedCache() *sharedCache { return &sharedCache{values: map[string][]byte{}} }

func (c *sharedCache) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// asked returns the times of the calls of Get.
func (c *sharedCache) asked() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.gets)
}

// stored returns what Set was given.
func (c *sharedCache) stored() map[string][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.values)
}

func (c *sharedCache) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	c.mu.Lock()
	c.gets = append(c.gets, time.Now())
	found := map[string][]byte{}
	for _, key := range keys {
		if value, ok := c.values[key]; ok {
			found[key] = slices.Clone(value)
		}
	}
	if c.spoil != nil {
		c.spoil(found)
	}
	get := c.get
	c.mu.Unlock()
	if get != nil {
		return found, get(ctx)
	}
	return found, nil
}

func (c *sharedCache) Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error {
	c.mu.Lock()
	set := c.set
	c.mu.Unlock()
	if set != nil {
		if err := set(ctx); err != nil {
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
			if r := runBulk(t, s.client(t), 120, bins.BulkOptions{Cache: cache}); !r.isWhole(120) {
				t.Errorf("%+v", r)
			}
		}
		if s.requests.Load() != 3 || len(cache.stored()) != 120 {
			t.Errorf("%d requests, %d values", s.requests.Load(), len(cache.stored()))
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
		if _, err := l.Load(t.Context(), "422222"); err != nil || time.Since(began) != 0 || len(cache.asked()) != 1 {
			t.Errorf("%v after %v and %d calls", err, time.Since(began), len(cache.asked()))
		}
		close(release)
	})
}

// A cache that failed five times in a row is skipped for a second, then two, and so on to 30, however
// little time its callers have.
func TestFailedCacheIsSkipped(t *testing.T) {
	for name, fails := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return errDown },
		"hangs": takes(time.Hour),
	} {
		for _, patience := range []time.Duration{80 * time.Millisecond, time.Minute} {
			synctest.Test(t, func(t *testing.T) { testFailedCacheIsSkipped(t, name, fails, patience) })
		}
	}
}

func testFailedCacheIsSkipped(t *testing.T, name string, fails func(context.Context) error, patience time.Duration) {
	cache := newSharedCache()
	cache.get = fails
	l := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1})
	load := func(first, times int) (calls []time.Time) {
		before := len(cache.asked())
		for i := range times {
			began := time.Now()
			if _, err := loadWithin(t, l, patience, fmt.Sprint(first+i)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until Get has noticed the end of its context
			time.Sleep(500*time.Millisecond - time.Since(began))
		}
		return cache.asked()[before:]
	}
	var waits []time.Duration
	calls := load(411111, 280)
	for i := 1; i < len(calls); i++ {
		waits = append(waits, calls[i].Sub(calls[i-1]).Truncate(500*time.Millisecond))
	}
	want := "[500ms 500ms 500ms 500ms 1s 2s 4s 8s 16s 30s 30s 30s]"
	if name == "hangs" {
		want = "[500ms 500ms 500ms 500ms 1.5s 2.5s 4.5s 8.5s 16.5s 30.5s 30.5s 30.5s]"
	}
	if got := fmt.Sprint(waits); got != want {
		t.Errorf("%s, %v: called after %v, want %v", name, patience, got, want)
	}
	cache.change(func() { cache.get = nil })
	time.Sleep(30 * time.Second)
	if n := len(load(511111, 10)); n != 10 {
		t.Errorf("%s: %d calls of a cache that works", name, n)
	}
	cache.change(func() { cache.get = fails })
	if n := len(load(611111, 10)); n != 6 {
		t.Errorf("%s: %d calls of a cache that fails again", name, n)
	}
}

// A value from a machine whose clock is ahead counts as new when it is read, and not for longer.
func TestSharedValueOfAClockThatIsAhead(t *testing.T) {
	cache := newSharedCache()
	synctest.Test(t, func(t *testing.T) { // the clock of each bubble begins at the same time
		time.Sleep(10 * time.Hour)
		if _, err := loader(t, &service{}, bins.LoaderOptions{Cache: cache}).Load(t.Context(), "411111"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour}), Cache: cache})
		for i, requests := range []int64{0, 1} {
			if _, err := l.Load(t.Context(), "411111"); err != nil || s.requests.Load() != requests {
				t.Errorf("load %d: %v, %d requests", i, err, s.requests.Load())
			}
			cache.change(func() { clear(cache.values) })
			time.Sleep(time.Hour)
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
		"a huge value":   each(func([]byte) []byte { return make([]byte, 1<<16) }),
		"of another key": func(found map[string][]byte) { clear(found); found["x"] = []byte("{}") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, cache := &service{}, newSharedCache()
			for i := range 3 {
				before := s.requests.Load()
				if r := runBulk(t, s.client(t), 60, bins.BulkOptions{Cache: cache}); !r.isWhole(60) {
					t.Errorf("%s: %+v", name, r)
				}
				if n, want := s.requests.Load()-before, []int64{2, 0, 2}[i]; n != want {
					t.Errorf("%s: %d requests, want %d", name, n, want)
				}
				if i == 1 {
					cache.change(func() { cache.spoil = change })
				}
			}
		})
	}
}

// A value carries its age. After the TTL it costs a request, even if the store has kept it longer.
// Within StaleFor it serves a process that starts during an outage.
func TestSharedValueKnowsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := "old"
		s := &service{
			answer: func(card string) (map[string]any, bool) {
				return branded(card, version), true
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
		s.change(func() { version = "new" })
		check(start(0), "old false")
		time.Sleep(50 * time.Minute)
		l := start(0)
		check(l, "old false")
		time.Sleep(15 * time.Minute) // now older than the TTL
		check(l, "new false")
		s.change(func() { s.status = http.StatusServiceUnavailable })
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
		s.change(func() { s.status, version = 0, "newer" })
		l = start(10 * time.Hour)
		check(l, "new true")
		check(l, "newer false")
		time.Sleep(365 * 24 * time.Hour)
		s.change(func() { version = "newest" })
		check(start(10*time.Hour), "newest false")
	})
}
