package bins_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

func TestLookupAllAnswersEveryInputInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{reorder: true, latency: func() time.Duration { return 60*time.Millisecond + rand.N(40*time.Millisecond) }}
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
		if want := (bins.BulkProgress{Done: 20_000, Distinct: 3000, Cached: 17_000, Requests: 60, Level: 8}); last != want {
			t.Errorf("progress = %+v, want %+v", last, want)
		}
	})
}

// Unordered, a slow request delays only its own results, even while more inputs than could
// wait behind it get theirs.
func TestLookupAllUnordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Bool
		s := &service{latency: func() time.Duration {
			if first.CompareAndSwap(false, true) {
				return 9 * time.Second
			}
			return time.Millisecond
		}}
		const n = 34_000 // more than may wait
		began, results, late := time.Now(), 0, 0
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(n), bins.BulkOptions{Concurrency: 4, Unordered: true}) {
			if want := fmt.Sprintf("4%07d", r.Index); err != nil || r.Err != nil || r.Input.Reveal() != want || brand(r.Result) != "of "+want {
				t.Fatal(r, err)
			}
			if results++; time.Since(began) >= 9*time.Second {
				late++
			}
		}
		if results != n || late != bins.MaxCards {
			t.Errorf("%d results, %d of them late", results, late)
		}
	})
}

// Unordered, a known card does not wait for a request.
func TestLookupAllUnorderedMixesKnownCards(t *testing.T) {
	const known = "499999"
	synctest.Test(t, func(t *testing.T) {
		s, memory := &service{}, bins.NewMemoryCache(bins.CacheOptions{})
		client := s.client(t)
		for range client.LookupAll(t.Context(), slices.Values([]string{known}), bins.BulkOptions{Memory: memory}) {
		}
		s.change(func() { s.latency = func() time.Duration { return 9 * time.Second } })
		began, early := time.Now(), 0
		inputs := slices.Concat(slices.Collect(numbered(bins.MaxCards)), slices.Repeat([]string{known}, 100))
		for r, err := range client.LookupAll(t.Context(), slices.Values(inputs), bins.BulkOptions{Memory: memory, Unordered: true}) {
			if err != nil || r.Err != nil {
				t.Fatal(r, err)
			}
			if time.Since(began) == 0 && r.Input.Reveal() == known {
				early++
			}
		}
		if early != 100 {
			t.Errorf("%d known cards came before the request's result", early)
		}
	})
}

// A card that no request can carry fails alone.
func TestOneBadCardFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{})
		cards := []string{"511111", strings.Repeat("4", 4<<10), "", "\xff411111", strings.Repeat("4", 4<<10+1)}
		var callers sync.WaitGroup
		for i, card := range cards {
			callers.Go(func() {
				_, err := l.Load(t.Context(), card)
				e, typed := errors.AsType[*bins.Error](err)
				if i < 2 && err != nil || i >= 2 && (!errors.Is(err, bins.ErrInvalidArgument) || !typed || e.Operation != "load") {
					t.Errorf("card %d: %v", i, err)
				}
			})
		}
		callers.Wait()
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

// With ReadAhead, results do not wait for the next input, and a batch that is not full is sent
// after 10 milliseconds.
func TestLookupAllReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan string)
		results := make(chan string)
		go func() {
			defer close(results)
			for r, err := range (&service{}).client(t).LookupAll(t.Context(), func(yield func(string) bool) {
				for card := range queue {
					if !yield(card) {
						return
					}
				}
			}, bins.BulkOptions{ReadAhead: true}) {
				if err != nil || r.Err != nil {
					t.Error(r, err)
				}
				results <- brand(r.Result)
			}
		}()
		for i := range 3 {
			card := fmt.Sprintf("41111%d", i)
			began := time.Now()
			queue <- card
			if got := <-results; got != "of "+card || time.Since(began) != 10*time.Millisecond {
				t.Errorf("%s after %v", got, time.Since(began))
			}
		}
		close(queue)
		if got, ok := <-results; ok {
			t.Errorf("a result too many: %s", got)
		}
	})
}

// With ReadAhead, a request that failed is sent again although no further input comes.
func TestReadAheadRepeatsWhileTheInputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{fail: func(n int64) int { return map[int64]int{2: 503, 3: 503}[n] }}
		answered := make(chan struct{}, 3)
		input := func(yield func(string) bool) {
			for card := range numbered(3) { // as with a queue, the next comes after a result, or much later
				if !yield(card) {
					return
				}
				select {
				case <-answered:
				case <-time.After(time.Hour):
				}
			}
		}
		began := time.Now()
		for r, err := range s.client(t).LookupAll(t.Context(), input, bins.BulkOptions{ReadAhead: true}) {
			if err != nil || r.Err != nil || time.Since(began) > time.Minute {
				t.Errorf("%v after %v: %v", r, time.Since(began), err)
			}
			answered <- struct{}{}
		}
	})
}

// With ReadAhead, an input that still waits for its queue after the loop takes one more card.
// Its yield refuses that card, so that it can be given back.
func TestLookupAllRefusesWhatComesAfterTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, back := make(chan string, 1), make(chan string, 1)
		queue <- "411111"
		for r, err := range (&service{}).client(t).LookupAll(t.Context(), func(yield func(string) bool) {
			for card := range queue {
				if !yield(card) {
					back <- card
					return
				}
			}
		}, bins.BulkOptions{ReadAhead: true}) {
			if err != nil || r.Err != nil {
				t.Fatal(r, err)
			}
			break
		}
		queue <- "422222"
		if card := <-back; card != "422222" {
			t.Errorf("%s was refused", card)
		}
	})
}
