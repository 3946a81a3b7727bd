package bins_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A run is what became of a bulk lookup.
type run struct {
	results, stale, failed, suspended int
	taken                             int // inputs
	progress                          bins.BulkProgress
	paused                            bool // at any time
	took                              time.Duration
	end                               error
}

// runBulk looks cards up. The error of each that has one must match those that are wanted.
func runBulk(t *testing.T, client *bins.Client, cards int, o bins.BulkOptions, wanted ...error) run {
	t.Helper()
	return runBulkWithin(t, 0, client, cards, o, wanted...)
}

// runBulkWithin is runBulk with a timeout; zero: none.
func runBulkWithin(t *testing.T, timeout time.Duration, client *bins.Client, cards int, o bins.BulkOptions, wanted ...error) (r run) {
	t.Helper()
	ctx := t.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	began, next := time.Now(), 0
	o.Progress = func(p bins.BulkProgress) { r.progress, r.paused = p, r.paused || p.Paused() }
	for result, err := range client.LookupAll(ctx, taking(numbered(cards), &r.taken), o) {
		switch {
		case r.end != nil:
			t.Error("a result after the end")
		case err != nil:
			r.end = err
			continue
		case result.Index != next:
			t.Errorf("result %d in place of %d", result.Index, next)
		case result.Err == nil && brand(result.Result) != "of "+result.Input.Reveal():
			t.Fatalf("%v has the result %v", result.Input, result.Result)
		case result.Err == nil && result.Result.Stale:
			r.stale++
		case result.Err == nil:
			r.results++
		case errors.Is(result.Err, bins.ErrSuspended):
			r.suspended++
		default:
			r.failed++
		}
		next++
		for _, err := range wanted {
			if result.Err != nil && !errors.Is(result.Err, err) {
				t.Errorf("result %d: %v, want %v", result.Index, result.Err, err)
			}
		}
	}
	r.took = time.Since(began)
	return r
}

func (r run) isWhole(cards int) bool { return r.end == nil && r.results == cards }

// hasEnded reports whether a lookup ended early because of an error, with an error for all that it has taken.
func (r run) hasEnded(because error) bool {
	return errors.Is(r.end, because) && !errors.Is(r.end, bins.ErrSuspended) && r.failed == 0 && r.results+r.suspended == r.taken
}

// taking counts the inputs that are taken.
func taking(input iter.Seq[string], taken *int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for card := range input {
			if *taken++; !yield(card) {
				return
			}
		}
	}
}
