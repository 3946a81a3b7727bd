package bins_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

func TestMemoryCacheExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(card string) (map[string]any, bool) {
			if card == "999999" {
				return map[string]any{"bin": card, "error": "unknown"}, true
			}
			return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": "B"}}}, true
		}}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: 10 * time.Hour, NegativeTTL: time.Hour})})
		steps := []struct {
			wait time.Duration
			card string
			want int64
		}{
			{0, "411111", 1}, {0, "999999", 2},
			{50 * time.Minute, "999999", 2}, {0, "411111", 2},
			{10 * time.Minute, "999999", 3}, // the NegativeTTL has passed
			{7 * time.Hour, "411111", 3},    // TTL is shortened by at most a tenth
			{3 * time.Hour, "411111", 4},
		}
		for i, step := range steps {
			time.Sleep(step.wait)
			r, err := l.Load(t.Context(), step.card)
			if err != nil || r.BIN != step.card || s.requests.Load() != step.want {
				t.Errorf("step %d: %v, %v after %d requests, want %d", i, r, err, s.requests.Load(), step.want)
			}
		}
	})
}

// The least recently used result is dropped, and not found again.
func TestMemoryCacheForgetsWhatItDrops(t *testing.T) {
	s := &service{answer: ranged(8)}
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: 2})
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
	for _, card := range []string{"41111111", "42222222", "41111111", "43333333", "41111111", "42222222"} {
		if r, err := l.Load(t.Context(), card); err != nil || r.Data.Card.CardBrand != "of "+card {
			t.Fatal(r, err)
		}
	}
	if got, want := cache.Stats(), (bins.CacheStats{Entries: 2, Hits: 2, Misses: 4, Evictions: 2}); got != want || s.requests.Load() != 4 {
		t.Errorf("%+v after %d requests, want %+v", got, s.requests.Load(), want)
	}
}

// What is not to be kept takes no room from what is.
func TestMemoryCacheKeepsNoErrorsUnlessAsked(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		if card == "41111111" {
			return ranged(8)(card)
		}
		return map[string]any{"bin": card, "error": "unknown"}, true
	}}
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: 2, NegativeTTL: -1})
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
	for _, card := range []string{"41111111", "42222222", "43333333", "44444444", "41111111"} {
		if _, err := l.Load(t.Context(), card); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := cache.Stats(), (bins.CacheStats{Entries: 1, Hits: 1, Misses: 4}); got != want || s.requests.Load() != 4 {
		t.Errorf("%+v after %d requests, want %+v", got, s.requests.Load(), want)
	}
}

// The three states of Enhanced share no result, neither in memory nor in a cache.
func TestEnhancedResultsAreApart(t *testing.T) {
	for _, o := range []bins.LoaderOptions{{Memory: bins.NewMemoryCache(bins.CacheOptions{})}, {Cache: newSharedCache()}} {
		s := &service{}
		for _, o.Enhanced = range []*bool{nil, new(true), new(false), nil, new(true), new(false)} {
			if _, err := loader(t, s, o).Load(t.Context(), "41111111"); err != nil {
				t.Fatal(err)
			}
		}
		if s.requests.Load() != 3 {
			t.Errorf("%d requests, want one for each state of Enhanced", s.requests.Load())
		}
	}
}

func TestMemoryCacheKeepsForEver(t *testing.T) {
	s := &service{}
	l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: math.MaxInt64, NegativeTTL: math.MaxInt64}), Window: -1})
	for range 3 {
		if _, err := l.Load(t.Context(), "411111"); err != nil {
			t.Fatal(err)
		}
	}
	if s.requests.Load() != 1 {
		t.Errorf("%d requests", s.requests.Load())
	}
}

// A large result is not kept, so the number of entries bounds the memory.
func TestMemoryCacheKeepsNothingLarge(t *testing.T) {
	large := strings.Repeat("x", 9<<10)
	for name, item := range map[string]map[string]any{
		"message": {"error": large},
		"card":    {"data": map[string]any{"card": map[string]any{"card_brand": large}}},
	} {
		cache := bins.NewMemoryCache(bins.CacheOptions{})
		l := loader(t, &service{answer: func(string) (map[string]any, bool) { return item, true }}, bins.LoaderOptions{Memory: cache, Window: -1})
		if r, err := l.Load(t.Context(), "411111"); err != nil || r.Error == "" && r.Data == nil || cache.Stats().Entries != 0 {
			t.Errorf("%s: %v, %d entries", name, err, cache.Stats().Entries)
		}
	}
}

// An item without a card that could be read is asked for again.
func TestUnreadableItemIsNotKept(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		item := map[string]any{"bin": card}
		if card == "411111" {
			item["data"] = "another type"
		}
		return item, true
	}}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values([]string{"411111", "422222"}), bins.BulkOptions{Memory: cache}) {
		if err != nil || r.Err != nil || slices.Equal(r.Result.Unread, []string{"data"}) != (r.Index == 0) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if cache.Stats().Entries != 1 {
		t.Errorf("%d entries", cache.Stats().Entries)
	}
}

// A result replaces an expired one, and drops no other.
func TestMemoryCacheReplacesWhatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := &service{}, bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, Entries: 2})
		l := loader(t, s, bins.LoaderOptions{Memory: cache})
		load := func(card string) {
			if _, err := l.Load(t.Context(), card); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			load("411111")
			load("422222")
			time.Sleep(2 * time.Hour)
		}
		if stats := cache.Stats(); stats.Entries != 2 || stats.Evictions != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// A result in memory does not hold the response that it came with.
func TestMemoryCacheKeepsLittle(t *testing.T) {
	const entries = 5_000
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // frees what finalizers and the first run left
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// Results differ only in their range.
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card[:6], "data": map[string]any{"card": map[string]any{
			"bin_min": card + strings.Repeat("0", 11), "bin_max": card + strings.Repeat("9", 11), "card_brand": strings.Repeat("b", 500),
			"additional_card_brands": []any{map[string]any{"card_brand": "another"}},
		}}}, true
	}}
	client, cache := s.client(t), bins.NewMemoryCache(bins.CacheOptions{})
	fill := func(first int) {
		for r, err := range client.LookupAll(t.Context(), func(yield func(string) bool) {
			for i := range entries {
				if !yield(fmt.Sprintf("4%07d", first+i)) {
					return
				}
			}
		}, bins.BulkOptions{Memory: cache}) {
			if err != nil || r.Err != nil {
				t.Fatal(r, err)
			}
		}
	}
	fill(0) // allocates what is shared, too
	before := inUse()
	fill(entries)
	if each := int64(inUse()-before) / entries; each > 600 || cache.Stats().Entries != 2*entries {
		t.Errorf("%d entries, %d bytes each", cache.Stats().Entries, each)
	} else {
		t.Logf("%d bytes each", each)
	}
}
