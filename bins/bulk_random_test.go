package bins_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
)

// TestLookupAllUnderRandomFaults draws services that are slow, fail, reorder,
// leave out, repeat and shorten, and consumers that are slow and leave. Whatever
// comes, every input has one result, in its place if it is to have one, which is its
// own or an error.
func TestLookupAllUnderRandomFaults(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { lookupAllOnce(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func lookupAllOnce(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	chance := func(percent int) bool { return rand.IntN(100) < percent }
	failing, omitting, truncating, ranges := rnd.IntN(30), rnd.IntN(10), rnd.IntN(2) == 0, rnd.IntN(2) == 0
	echoing := rnd.IntN(2) == 0
	slowest := time.Duration(1+rnd.IntN(2000)) * time.Millisecond
	s := &service{
		reorder: rnd.IntN(2) == 0,
		latency: func() time.Duration { return rand.N(slowest) },
		fail: func(int64) int {
			if chance(failing) {
				return []int{400, 429, 500, 503}[rand.IntN(4)]
			}
			return 0
		},
		answer: func(card string) (map[string]any, bool) {
			item, _ := ranged(8)(rangeOf(card))
			found := item["data"].(map[string]any)["card"].(map[string]any)
			if found["pan_or_token"] = card; !echoing {
				found["pan_or_token"] = nil
			}
			if !truncating {
				item["bin"] = card
			}
			return item, !chance(omitting)
		},
	}
	inputs := make([]string, rnd.IntN(2000))
	for i := range inputs {
		inputs[i] = fmt.Sprintf("4%0*d", 5+rnd.IntN(11), rnd.IntN(1+rnd.IntN(1000)))
	}
	o := bins.BulkOptions{Concurrency: 1 + rnd.IntN(10), Ranges: ranges, Unordered: rnd.IntN(3) == 0}
	leaveAt, cancelAt := -1, time.Duration(0)
	ctx := t.Context()
	switch rnd.IntN(4) {
	case 0:
		leaveAt = rnd.IntN(len(inputs) + 1)
	case 1:
		cancelAt = rand.N(20 * time.Second)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cancelAt)
		defer cancel()
	}
	opts := []bins.Option{bins.WithMaxRetries(rnd.IntN(3))}
	if rnd.IntN(2) == 0 {
		opts = append(opts, bins.WithRateLimit(rate.Limit(1+rnd.IntN(50)), 1+rnd.IntN(3)))
	}
	slowConsumer := rnd.IntN(3) == 0

	next, ended := 0, false
	seen := make([]bool, len(inputs))
	for r, err := range s.client(t, opts...).LookupAll(ctx, func(yield func(string) bool) {
		for _, card := range inputs {
			if !yield(card) {
				return
			}
		}
	}, o) {
		if ended {
			t.Errorf("a result after the end")
		}
		if r.Index < 0 {
			if ended = true; cancelAt == 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended by %v", err)
			}
			continue
		}
		if !o.Unordered && r.Index != next || seen[r.Index] || r.Input.Reveal() != inputs[r.Index] {
			t.Fatalf("result %d of %v at the place of input %d, %s", r.Index, r.Input, next, inputs[next])
		}
		seen[r.Index] = true
		if err == nil && r.Result.Data.Card.CardBrand != "of "+rangeOf(inputs[r.Index])[:8] {
			t.Errorf("input %d, %s, was answered for %s", r.Index, inputs[r.Index], r.Result.Data.Card.CardBrand)
		}
		if next++; next == leaveAt {
			break
		}
		if slowConsumer && chance(1) {
			time.Sleep(rand.N(10 * time.Second))
		}
	}
	if leaveAt < 0 && !ended && next != len(inputs) {
		t.Errorf("%d results for %d inputs", next, len(inputs))
	}
	if s.inFlight.Load() != 0 {
		t.Error("requests are left")
	}
}

// rangeOf lengthens what is shorter than a range: the service answers it for the
// first of the ranges that it spans.
func rangeOf(card string) string { return card + strings.Repeat("0", max(0, 8-len(card))) }
