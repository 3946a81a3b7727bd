package bins_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

func TestMemoryCacheExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(card string) (map[string]any, bool) {
			if card == "999999" {
				return map[string]any{"bin": card, "error": "unknown"}, true
			}
			return branded(card, "B"), true
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

// The least recently used result is dropped, and not found again. One that has no room drops no other.
func TestMemoryCacheForgetsWhatItDrops(t *testing.T) {
	const large = "45555555"
	s := &service{answer: func(card string) (map[string]any, bool) {
		item, _ := ranged(8)(card)
		if card == large {
			item["data"].(map[string]any)["card"].(map[string]any)["card_segment_type"] = strings.Repeat("x", 3000)
		}
		return item, true
	}}
	cache := bins.NewMemoryCache(bins.CacheOptions{MaxBytes: roomForTwo})
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
	for _, card := range []string{"41111111", "42222222", "41111111", "43333333", large, "41111111", "42222222"} {
		if r, err := l.Load(t.Context(), card); err != nil || r.Data.Card.CardBrand != "of "+card {
			t.Fatal(r, err)
		}
	}
	got, want := cache.Stats(), bins.CacheStats{Entries: 2, Hits: 2, Misses: 5, Evictions: 2}
	if want.Bytes = got.Bytes; got != want || got.Bytes < roomForTwo/2 || got.Bytes > roomForTwo || s.requests.Load() != 5 {
		t.Errorf("%+v after %d requests, want %+v", got, s.requests.Load(), want)
	}
}

// roomForTwo is the size of a cache for two small results, which are smaller on 32 bits.
const roomForTwo = 2000 + 1000*(strconv.IntSize/64)

// What is not to be kept takes no room from what is.
func TestMemoryCacheKeepsNoErrorsUnlessAsked(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		if card == "41111111" {
			return ranged(8)(card)
		}
		return map[string]any{"bin": card, "error": "unknown"}, true
	}}
	cache := bins.NewMemoryCache(bins.CacheOptions{MaxBytes: roomForTwo, NegativeTTL: -1})
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
	for _, card := range []string{"41111111", "42222222", "43333333", "44444444", "41111111"} {
		if _, err := l.Load(t.Context(), card); err != nil {
			t.Fatal(err)
		}
	}
	if got := cache.Stats(); got.Entries != 1 || got.Hits != 1 || got.Misses != 4 || got.Evictions != 0 || s.requests.Load() != 4 {
		t.Errorf("%+v after %d requests", got, s.requests.Load())
	}
}

// A result from a cache has every field but those of a single card.
func TestCachedResultHasEveryField(t *testing.T) {
	item := testkit.Generic(t, []byte(fullResponse(t))).(map[string]any)["cards"].([]any)[0].(map[string]any)
	card := item["data"].(map[string]any)["card"].(map[string]any)
	delete(item, "error")
	s := &service{answer: func(string) (map[string]any, bool) { return item, true }}
	shared, memory := newSharedCache(), bins.NewMemoryCache(bins.CacheOptions{})
	load := func(o bins.LoaderOptions) bins.Result {
		var r bins.Result
		synctest.Test(t, func(t *testing.T) {
			var err error
			if r, err = loader(t, s, o).Load(t.Context(), "45717360"); err != nil {
				t.Fatal(err)
			}
		})
		return r
	}
	load(bins.LoaderOptions{Memory: memory, Cache: shared})
	card["correlation_id"], card["pan_or_token"] = "", ""
	want := decoded(t, string(testkit.Encoded(t, map[string]any{"cards": []any{item}}))).Cards[0]
	for _, o := range []bins.LoaderOptions{{Memory: memory}, {Cache: shared}} {
		testkit.SameJSON(t, "the result", testkit.Encoded(t, load(o)), testkit.Encoded(t, want))
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
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
		s, cache := &service{}, bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, MaxBytes: roomForTwo})
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

// The results in memory take what Stats says. They do not hold the responses that they came with.
func TestMemoryCacheIsBounded(t *testing.T) {
	const entries = 2_000
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // frees what finalizers and the first run left
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	client, cache := (&service{}).client(t), bins.NewMemoryCache(bins.CacheOptions{})
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
	before, said := inUse(), cache.Stats().Bytes
	fill(entries)
	took, said := int64(inUse()-before), cache.Stats().Bytes-said
	if took > said*11/10 || cache.Stats().Entries != 2*entries {
		t.Errorf("%d entries take %d bytes, and %d by Stats", cache.Stats().Entries, took, said)
	} else {
		t.Logf("%d bytes each, and %d by Stats", took/entries, said/entries)
	}
}
