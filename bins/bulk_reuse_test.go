package bins_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// lookUpAll looks cards up and checks that each has its own result.
func lookUpAll(t *testing.T, s *service, o bins.BulkOptions, cards []string) {
	t.Helper()
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), o) {
		if err != nil || !strings.HasPrefix(r.Result.Data.Card.CardBrand, "of "+r.Input.Reveal()+" ") {
			t.Fatalf("input %d, %s: %v", r.Index, r.Input, err)
		}
	}
}

// long answers with results of 1 KB.
func long(card string) (map[string]any, bool) {
	brand := "of " + card + " " + strings.Repeat("x", 1<<10)
	return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": brand}}}, true
}

// TestLookupAllReusesRecentResults: in an input that repeats little, an identifier that
// comes again soon needs no request, one that comes again much later does, and both have
// their own result.
func TestLookupAllReusesRecentResults(t *testing.T) {
	var cards []string
	for i := range 15_000 {
		cards = append(cards, fmt.Sprintf("4%07d", i))
		if i%20 == 0 && i >= 11_000 { // the first responses have long been dropped

			cards = append(cards, fmt.Sprintf("4%07d", i-900+i%7))
		}
	}
	s := &service{answer: long}
	lookUpAll(t, s, bins.BulkOptions{Concurrency: 1}, append(cards, cards[:100]...))
	if n := s.cards.Load(); n != 15_100 {
		t.Errorf("%d cards were sent, want 15,100", n)
	}
}

// TestLookupAllReusesWhatRepeats: once the input has shown that it repeats, all that the
// memory has room for is reused.
func TestLookupAllReusesWhatRepeats(t *testing.T) {
	var cards []string
	for i := range 4000 {
		cards = append(cards, fmt.Sprintf("4%07d", i%500))
	}
	for range 2 {
		for i := range 10_000 {
			cards = append(cards, fmt.Sprintf("5%07d", i))
		}
	}
	s := &service{answer: long}
	lookUpAll(t, s, bins.BulkOptions{}, cards)
	if n := s.cards.Load(); n != 10_500 {
		t.Errorf("%d cards were sent, want 10,500", n)
	}
}

// TestLookupAllUnorderedWaitsForNothing: what is known is yielded at once, whatever is
// in flight.
func TestLookupAllUnorderedWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: long}
		memory := bins.NewMemoryCache(bins.CacheOptions{})
		lookUpAll(t, s, bins.BulkOptions{Memory: memory}, []string{"499999"})
		s.latency = func() time.Duration { return 9 * time.Second }
		cards := append(slices.Collect(numbered(bins.MaxCards)), "499999")
		began := time.Now()
		for r := range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{Memory: memory, Unordered: true}) {
			if late := time.Since(began) > 0; late != (r.Index < bins.MaxCards) {
				t.Errorf("result %d after %v", r.Index, time.Since(began))
			}
		}
	})
}

// TestLookupAllRepeatsSoon: a batch that failed is sent again as soon as others succeed,
// and holds the results behind it up no longer.
func TestLookupAllRepeatsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func() time.Duration { return 10 * time.Millisecond },
			fail: func(n int64) int {
				if n == 1 {
					return http.StatusServiceUnavailable
				}
				return 0
			},
		}
		began := time.Now()
		for r, err := range s.client(t, bins.WithMaxRetries(0)).LookupAll(t.Context(), numbered(20_000), bins.BulkOptions{Concurrency: 2}) {
			if took := time.Since(began); err != nil || took > 50*time.Millisecond {
				t.Fatalf("result %d after %v, %v", r.Index, took, err)
			}
			if r.Index == 2*bins.MaxCards { // whichever of the first two requests failed
				break
			}
		}
	})
}
