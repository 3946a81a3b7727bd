package bins_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// constant is a cache that has one value for every key.
type constant string

func (c constant) Get(_ context.Context, keys []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, key := range keys {
		values[key] = []byte(c)
	}
	return values, nil
}

func (constant) Set(context.Context, map[string][]byte, time.Duration) error { return nil }

func TestCachedGarbageIsNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, garbage := range []string{"", "null", "{}", `{"x":1}`, `{"data":{}}`, `{"error":"x"}`, `[]`, "{"} {
			s := &service{}
			r, err := loader(t, s, bins.LoaderOptions{Cache: constant(garbage), Window: -1}).Load(t.Context(), "411111")
			if err != nil || s.requests.Load() != 1 || r.Data.Card.CardBrand != "of 411111" {
				t.Errorf("%s: %v, %v after %d requests", garbage, r, err, s.requests.Load())
			}
		}
	})
}

// What belongs to one card, the caller does not get from a cache, whoever wrote it there.
func TestCachedResultIsOfNoOneCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := constant(`{"bin":"999999","data":{"card":{"pan_or_token":"tok_2","correlation_id":"c","card_brand":"B"}}}`)
		r, err := loader(t, &service{}, bins.LoaderOptions{Cache: cache, Window: -1}).Load(t.Context(), "tok_1")
		if err != nil || r.BIN != "" || r.Data.Card.CardBrand != "B" || !r.Data.Card.PANOrToken.IsZero() || r.Data.Card.CorrelationID != "" {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// An item that could not be read is asked for again.
func TestUnreadableItemIsNotKept(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": 1}}}, true
	}}
	// Beside another, so that the response is usable.
	readable := s.answer
	s.answer = func(card string) (map[string]any, bool) {
		if card == "422222" {
			return map[string]any{"bin": card}, true
		}
		return readable(card)
	}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values([]string{"411111", "422222"}), bins.BulkOptions{Memory: cache}) {
		if errors.Is(err, bins.ErrBadResponse) != (r.Index == 0) {
			t.Errorf("%v: %v", r, err)
		}
	}
	if cache.Len() != 1 {
		t.Errorf("%d entries", cache.Len())
	}
}

func TestMemoryCacheNeedsNoOptions(t *testing.T) {
	for name, cache := range map[string]*bins.MemoryCache{"none": nil, "zero": {}} {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{Memory: cache, Window: -1})
		for range 2 {
			if _, err := l.Load(t.Context(), "411111"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.requests.Load() != 1 {
			t.Errorf("%s: %d requests", name, s.requests.Load())
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

// What is kept has a size that the number of entries then bounds.
func TestMemoryCacheKeepsNothingLarge(t *testing.T) {
	large := strings.Repeat("x", 9<<10)
	for name, item := range map[string]map[string]any{
		"message": {"error": large},
		"card":    {"data": map[string]any{"card": map[string]any{"card_brand": large}}},
	} {
		cache := bins.NewMemoryCache(bins.CacheOptions{})
		l := loader(t, &service{answer: func(string) (map[string]any, bool) { return item, true }}, bins.LoaderOptions{Memory: cache, Window: -1})
		if r, err := l.Load(t.Context(), "411111"); err != nil || r.Error == "" && r.Data == nil || cache.Len() != 0 {
			t.Errorf("%s: %v, %d entries", name, err, cache.Len())
		}
	}
}

func TestEmptyIdentifierIsNoRange(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": "of " + card}}}, true
	}}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	l := loader(t, s, bins.LoaderOptions{Memory: cache, Ranges: true, Window: -1})
	for _, card := range []string{"", "0000000000000000000"} {
		if r, err := l.Load(t.Context(), card); err != nil || r.Data.Card.CardBrand != "of "+card {
			t.Errorf("%q: %v, %v", card, r, err)
		}
	}
	if cache.Len() != 0 {
		t.Errorf("%d entries", cache.Len())
	}
}

// slow is a cache that takes a while, but no longer than its context.
type slow struct{ *sharedCache }

func (c slow) Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Millisecond):
		return c.sharedCache.Set(ctx, values, ttl)
	}
}

// The last results are shared too, although the loop ends with them.
func TestEveryResultIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := slow{&sharedCache{values: map[string][]byte{}}}
		for _, err := range (&service{}).client(t).LookupAll(t.Context(), numbered(120), bins.BulkOptions{Cache: cache}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(cache.values) != 120 {
			t.Errorf("%d of 120 results are shared", len(cache.values))
		}
	})
}
