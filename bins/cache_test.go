package bins_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// ranged responds with a range of the first n digits, as a service with ranges of
// that width does.
func ranged(n int) func(string) (map[string]any, bool) {
	return func(card string) (map[string]any, bool) {
		prefix := card[:min(n, len(card))]
		return map[string]any{"bin": prefix[:6], "data": map[string]any{"card": map[string]any{
			"bin_min": prefix + strings.Repeat("0", 19-len(prefix)), "bin_max": prefix + strings.Repeat("9", 19-len(prefix)),
			"card_brand": "of " + prefix, "pan_or_token": card, "correlation_id": "c-" + card,
		}}}, true
	}
}

func TestMemoryCacheExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(card string) (map[string]any, bool) {
			if card == "999999" {
				return map[string]any{"bin": card, "error": "unknown"}, true
			}
			return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{}}}, true
		}}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: 10 * time.Hour, NegativeTTL: time.Hour})})
		steps := []struct {
			wait time.Duration
			card string
			want int64
		}{
			{0, "411111", 1}, {0, "999999", 2},
			{50 * time.Minute, "999999", 2}, {0, "411111", 2},
			{10 * time.Minute, "999999", 3}, // the negative one is over
			{7 * time.Hour, "411111", 3},    // within nine tenths
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

func TestMemoryCacheIsBounded(t *testing.T) {
	s := &service{}
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: 100})
	client := s.client(t)
	run := func(n int) {
		for r, err := range client.LookupAll(t.Context(), numbered(n), bins.BulkOptions{Memory: cache}) {
			if err != nil || r.Result.Data.Card.CardBrand != "of "+r.Input.Reveal() {
				t.Fatalf("%v: %v", r, err)
			}
		}
	}
	run(1000)
	if cache.Len() != 100 {
		t.Errorf("%d entries, want 100", cache.Len())
	}
	// What is used stays, whatever passes through.
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
	for i := range 300 {
		for _, card := range []string{"411111", fmt.Sprintf("5%07d", i)} {
			if _, err := l.Load(t.Context(), card); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.cards.Load(); got != 1000+1+300 {
		t.Errorf("%d cards asked for, want 411111 once", got)
	}
}

// What was dropped to make room is not found again, neither by its identifier nor by its
// range.
func TestMemoryCacheForgetsWhatItDrops(t *testing.T) {
	for _, ranges := range []bool{false, true} {
		s := &service{answer: ranged(8)}
		cache := bins.NewMemoryCache(bins.CacheOptions{Entries: 2})
		l := loader(t, s, bins.LoaderOptions{Memory: cache, Ranges: ranges, Window: -1})
		for _, card := range []string{"41111111", "42222222", "41111111", "43333333", "41111111", "42222222"} {
			if r, err := l.Load(t.Context(), card); err != nil || r.Data.Card.CardBrand != "of "+card {
				t.Fatal(r, err)
			}
		}
		if got, want := cache.Stats(), (bins.CacheStats{Entries: 2, Hits: 2, Misses: 4, Evictions: 2}); got != want || s.requests.Load() != 4 {
			t.Errorf("ranges %v: %+v after %d requests, want %+v", ranges, got, s.requests.Load(), want)
		}
	}
}

// Neither a card number that the service states as BIN is kept, nor a range that takes
// more memory than it is worth.
func TestMemoryCacheIsParticular(t *testing.T) {
	const number = "4111111111111111"
	item := func(bin, low, high string) func(string) (map[string]any, bool) {
		return func(string) (map[string]any, bool) {
			return map[string]any{"bin": bin, "data": map[string]any{"card": map[string]any{"bin_min": low, "bin_max": high}}}, true
		}
	}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	l := loader(t, &service{answer: item(number, "41111111", "41111111")}, bins.LoaderOptions{Memory: cache, Ranges: true, Window: -1})
	for _, want := range []string{number, ""} {
		if r, err := l.Load(t.Context(), number); err != nil || r.BIN != want {
			t.Errorf("%v, %v, want the BIN %q", r, err, want)
		}
	}
	pieces := loader(t, &service{answer: item("455555", "4000000000000000001", "4999999999999999998")}, bins.LoaderOptions{Memory: cache, Ranges: true, Window: -1})
	if _, err := pieces.Load(t.Context(), "45555555"); err != nil || cache.Len() != 1 {
		t.Errorf("%v, %d entries", err, cache.Len())
	}
}

func TestEnhancedResultsAreApart(t *testing.T) {
	s := &service{answer: ranged(8)}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for _, enhanced := range []*bool{nil, new(true), new(false), nil, new(true), new(false)} {
		l := loader(t, s, bins.LoaderOptions{Memory: cache, Enhanced: enhanced, Ranges: true, Window: -1})
		if _, err := l.Load(t.Context(), "41111111"); err != nil {
			t.Fatal(err)
		}
	}
	if s.requests.Load() != 3 {
		t.Errorf("%d requests, want one for each state of Enhanced", s.requests.Load())
	}
}

func TestRangesServeCardNumbers(t *testing.T) {
	s := &service{answer: ranged(9)}
	cards := []string{"4111111112345678", "4111111199999999", "4111111112300000", "411111111", "41111111"}
	for r, err := range s.client(t).LookupAll(t.Context(), func(yield func(string) bool) {
		for range 20 {
			for _, card := range cards {
				if !yield(card) {
					return
				}
			}
		}
	}, bins.BulkOptions{Ranges: true}) {
		card := r.Input.Reveal()
		if err != nil || r.Result.Data.Card.CardBrand != "of "+card[:min(9, len(card))] {
			t.Errorf("%v: %v, %v", r.Input, r.Result.Data.Card, err)
		}
		if pan := r.Result.Data.Card.PANOrToken.Reveal(); pan != "" && pan != card {
			t.Errorf("%v was answered with the number of another card", r.Input)
		}
	}
	if s.cards.Load() > int64(len(cards)) {
		t.Errorf("%d cards sent", s.cards.Load())
	}
}

// Without the assumption, and without a prefix, a card number is not kept.
func TestCardNumbersAreNoKeys(t *testing.T) {
	for _, card := range []string{"4111111111111111", "4111 1111 1111 1111", "4111-1111-1111"} {
		s := &service{}
		memory := bins.NewMemoryCache(bins.CacheOptions{})
		shared := &sharedCache{values: map[string][]byte{}}
		if _, err := loader(t, s, bins.LoaderOptions{Memory: memory, Cache: shared, Window: -1}).Load(t.Context(), card); err != nil {
			t.Fatal(err)
		}
		if memory.Len() != 0 || len(shared.values) != 0 || shared.gets != 0 {
			t.Errorf("%d entries, values %v, %d gets", memory.Len(), shared.values, shared.gets)
		}
	}
}

func TestPrefixLengthKeepsCardNumbersInside(t *testing.T) {
	s := &service{}
	memory := bins.NewMemoryCache(bins.CacheOptions{})
	for r, err := range s.client(t).LookupAll(t.Context(), func(yield func(string) bool) {
		_ = yield("4111111111111111") && yield("4111 1111 9999 9999") && yield("411111") && yield("tok_abc")
	}, bins.BulkOptions{PrefixLength: 8, Memory: memory}) {
		want := "of " + map[int]string{0: "41111111", 1: "41111111", 2: "411111", 3: "tok_abc"}[r.Index]
		if err != nil || r.Result.Data.Card.CardBrand != want {
			t.Errorf("result %d: %v, %v", r.Index, r.Result.Data.Card.CardBrand, err)
		}
	}
	if s.cards.Load() != 3 || memory.Len() != 3 {
		t.Errorf("%d cards sent, %d kept", s.cards.Load(), memory.Len())
	}
}

// A sharedCache is a cache beyond the process, as a user writes it.
type sharedCache struct {
	mu     sync.Mutex
	values map[string][]byte
	gets   int
	broken bool
}

func (c *sharedCache) Get(_ context.Context, keys []string) (map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets++
	if c.broken {
		return nil, errors.New("down")
	}
	found := map[string][]byte{}
	for _, key := range keys {
		if value, ok := c.values[key]; ok {
			found[key] = value
		}
	}
	return found, nil
}

func (c *sharedCache) Set(_ context.Context, values map[string][]byte, ttl time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || ttl <= 0 {
		return errors.New("down")
	}
	maps.Copy(c.values, values)
	return nil
}

func TestSharedCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: ranged(8)}
		cache := &sharedCache{values: map[string][]byte{}}
		client := s.client(t)
		for range 2 { // two replicas
			for r, err := range client.LookupAll(t.Context(), numbered(100), bins.BulkOptions{Cache: cache}) {
				if err != nil || r.Result.Data.Card.CardBrand != "of "+r.Input.Reveal() {
					t.Fatalf("%v: %v", r, err)
				}
			}
		}
		if s.requests.Load() != 2 || len(cache.values) != 100 {
			t.Errorf("%d requests, %d values", s.requests.Load(), len(cache.values))
		}
		for key, value := range cache.values {
			if strings.Contains(string(value), "c-4") || !strings.HasPrefix(key, "bin2:") {
				t.Fatalf("%s holds what belongs to one call: %s", key, value)
			}
		}
	})
}

// TestMemoryCacheKeepsLittle: a result in memory holds no more of the response that
// it came with than its own few words.
func TestMemoryCacheKeepsLittle(t *testing.T) {
	const entries = 5_000
	inUse := func() uint64 {
		runtime.GC()
		runtime.GC() // what finalizers and the first one left
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// The result differs in range alone.
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card[:6], "data": map[string]any{"card": map[string]any{
			"bin_min": card + strings.Repeat("0", 11), "bin_max": card + strings.Repeat("9", 11), "card_brand": strings.Repeat("b", 500),
			"additional_card_brands": []any{map[string]any{"bin_min": card + strings.Repeat("0", 11)}},
		}}}, true
	}}
	client, cache := s.client(t), bins.NewMemoryCache(bins.CacheOptions{})
	fill := func(first int) {
		for _, err := range client.LookupAll(t.Context(), func(yield func(string) bool) {
			for i := range entries {
				if !yield(fmt.Sprintf("4%07d", first+i)) {
					return
				}
			}
		}, bins.BulkOptions{Memory: cache}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0) // and what is made once
	before := inUse()
	fill(entries)
	if each := int64(inUse()-before) / entries; each > 450 || cache.Len() != 2*entries {
		t.Errorf("%d entries, %d bytes each", cache.Len(), each)
	} else {
		t.Logf("%d bytes each", each)
	}
}
