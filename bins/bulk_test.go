package bins_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

func TestLookupAllAnswersEveryInputInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{reorder: true, latency: 60 * time.Millisecond, delay: func() time.Duration { return rand.N(40 * time.Millisecond) }}
		var last bins.BulkProgress
		next := 0
		for r, err := range s.client(t).LookupAll(t.Context(), func(yield func(string) bool) {
			for i := range 20_000 {
				if !yield(fmt.Sprintf("4%07d", i*7919%3000)) {
					return
				}
			}
		}, bins.BulkOptions{Concurrency: 8, Progress: func(p bins.BulkProgress) { last = p }}) {
			want := fmt.Sprintf("4%07d", next*7919%3000)
			if card, failed := r.Card(); err != nil || failed != nil || r.Index != next || r.Input.Reveal() != want || card.CardBrand != "of "+want {
				t.Fatalf("result %d = %v, %v, %v; want %s", next, card, failed, err, want)
			}
			next++
		}
		if next != 20_000 || s.requests.Load() != 60 || s.cards.Load() != 3000 {
			t.Errorf("%d results by %d requests of %d cards", next, s.requests.Load(), s.cards.Load())
		}
		if s.most.Load() != 8 {
			t.Errorf("%d requests in flight, want 8", s.most.Load())
		}
		if want := (bins.BulkProgress{Done: 20_000, Distinct: 3000, Cached: 17_000, Requests: 60}); last != want {
			t.Errorf("progress = %+v, want %+v", last, want)
		}
	})
}

// A card that no request can carry fails alone.
func TestOneBadCardFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{})
		cards := []string{"511111", strings.Repeat("4", 4<<10), "", "\xff411111", strings.Repeat("4", 4<<10+1)}
		for i, err := range loadAll(t, l, cards...) {
			e, typed := errors.AsType[*bins.Error](err)
			if i < 2 && err != nil || i >= 2 && (!errors.Is(err, bins.ErrInvalidArgument) || !typed || e.Operation != "load") {
				t.Errorf("card %d: %v", i, err)
			}
		}
		results := 0
		for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{}) {
			if err != nil || r.Index != results || (r.Index >= 2) != errors.Is(r.Err, bins.ErrInvalidArgument) || r.Index >= 2 && r.Reused {
				t.Errorf("result %d is %v, %v", results, r, err)
			}
			results++
		}
		if results != len(cards) {
			t.Errorf("%d results", results)
		}
	})
}

func TestLookupAllReportsWhatIsMissing(t *testing.T) {
	const missing = "40000003"
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card}, card != missing
	}}
	for r, err := range s.client(t).LookupAll(t.Context(), numbered(10), bins.BulkOptions{}) {
		if err != nil || errors.Is(r.Err, bins.ErrMissing) != (r.Input.Reveal() == missing) {
			t.Errorf("%s: %v, %v", r.Input, r.Err, err)
		}
	}
}
