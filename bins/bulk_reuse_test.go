package bins_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// lookUpAll looks up cards, and checks that each gets its own result.
func lookUpAll(t *testing.T, s *service, o bins.BulkOptions, cards []string) {
	t.Helper()
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), o) {
		if err != nil || r.Err != nil || !strings.HasPrefix(r.Result.Data.Card.CardBrand, "of "+r.Input.Reveal()+" ") {
			t.Fatalf("input %d, %s: %v", r.Index, r.Input, err)
		}
	}
}

// long answers with results of 1 KB.
func long(card string) (map[string]any, bool) {
	return branded(card, "of "+card+" "+strings.Repeat("x", 1<<10)), true
}

// In an input that repeats little, an identifier that comes again soon needs no request, and one
// that comes again much later does.
func TestLookupAllReusesRecentResults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	var cards []string
	for i := range 15_000 {
		cards = append(cards, fmt.Sprintf("4%07d", i))
		if i%20 == 0 && i >= 11_000 { // the first responses are dropped by now
			cards = append(cards, fmt.Sprintf("4%07d", i-900+i%7))
		}
	}
	s := &service{answer: long}
	lookUpAll(t, s, bins.BulkOptions{Concurrency: 1}, append(cards, cards[:100]...))
	if n := s.cards.Load(); n != 15_100 {
		t.Errorf("%d cards were sent, want 15,100", n)
	}
}

// What came while the loop was busy costs no later result its place.
func TestLookupAllReusesResultsAfterABreak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		const before, cards = 8000, 10_000
		s := &service{answer: long, latency: 10 * time.Millisecond}
		input := func(yield func(string) bool) {
			for i := range cards {
				if !yield(fmt.Sprintf("4%07d", i)) {
					return
				}
				if i > before && i%bins.MaxCards == 0 { // one request at a time from now on
					time.Sleep(time.Second)
					if again := i - 200; again > before+100 && !yield(fmt.Sprintf("4%07d", again)) {
						return
					}
				}
			}
		}
		for r, err := range s.client(t).LookupAll(t.Context(), input, bins.BulkOptions{Concurrency: 80}) {
			if err != nil || r.Err != nil {
				t.Fatal(r, err)
			}
			if r.Index == before/2 {
				time.Sleep(time.Minute) // all that is in flight arrives
			}
		}
		if n := s.cards.Load(); n != cards || s.most.Load() < 80 {
			t.Errorf("%d cards were sent, want %d, with %d requests in flight", n, cards, s.most.Load())
		}
	})
}

// In an input that repeats a lot, all results that fit into the memory are reused.
func TestLookupAllReusesWhatRepeats(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
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

// A caller that changes a result changes no other result.
func TestResultsAreTheReceivers(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{
			"networkfees": map[string]any{"fee": 1}, "additional_card_brands": []any{map[string]any{"card_brand": "b"}},
		}}}, true
	}}
	inputs := func(yield func(string) bool) {
		for i := range 3 * bins.MaxCards {
			if !yield(fmt.Sprintf("4571736%02d", i%bins.MaxCards)) {
				return
			}
		}
	}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for range 2 {
		for r, err := range s.client(t).LookupAll(t.Context(), inputs, bins.BulkOptions{Memory: cache}) {
			card, failed := r.Card()
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			if string(card.NetworkFees) != `{"fee":1}` || card.AdditionalCardBrands[0].CardBrand != "b" {
				t.Fatalf("result %d has %s and %s", r.Index, card.NetworkFees, card.AdditionalCardBrands[0].CardBrand)
			}
			copy(card.NetworkFees, "xxxxxxxxx")
			card.AdditionalCardBrands[0].CardBrand = "x"
		}
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
