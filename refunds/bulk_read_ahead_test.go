package refunds_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// A result does not wait for the next record of a queue.
func TestReadAheadYieldsWhileTheInputWaits(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			inputEnded := false
			input := func(yield func(refunds.Item) bool) {
				defer func() { inputEnded = true }()
				for item := range table("a", "a", "a") {
					yield(item)
					time.Sleep(time.Hour)
				}
				cancel()
				time.Sleep(time.Second) // it closes something
			}
			s := &service{latency: func(string) time.Duration { return time.Second }}
			results := 0
			var end error
			for one, err := range s.client(t).SubmitAll(ctx, input, refunds.BulkOptions{ReadAhead: true, Ordered: ordered}) {
				if end = err; err != nil {
					if !inputEnded { // a program that exits now would lose what the input gives back
						t.Error("the error came before the input had ended")
					}
					continue
				}
				if at := time.Since(s.began); one.Err != nil || at != time.Duration(results)*time.Hour+time.Second {
					t.Errorf("%v came after %v: %v", one, at, one.Err)
				}
				results++
			}
			if took := time.Since(s.began); results != 3 || !inputEnded || took != 3*time.Hour+time.Second || !errors.Is(end, context.Canceled) {
				t.Errorf("%d results, input ended %v, after %v: %v", results, inputEnded, took, end)
			}
		})
	}
}

// A record that is ready waits neither for the loop nor for the response of another.
func TestReadAheadSendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(id string) time.Duration {
			return map[string]time.Duration{"rf_0": time.Second, "rf_1": time.Hour, "rf_2": time.Second}[id]
		}}
		input := func(yield func(refunds.Item) bool) {
			for item := range table("a", "b", "c") {
				if item.AccountID == "c" {
					time.Sleep(time.Second / 2)
				}
				yield(item)
			}
			time.Sleep(2 * time.Hour)
		}
		for one := range s.warmClient(t, refunds.WithAttemptTimeout(0)).SubmitAll(t.Context(), input, refunds.BulkOptions{ReadAhead: true, Concurrency: 2}) {
			if one.Index == 0 {
				time.Sleep(time.Minute)
			}
		}
		if sent := s.sent(); sent[1].at != 0 || sent[2].at != time.Second {
			t.Errorf("%v", sent)
		}
	})
}

// If the input's yield returned false, the record was not sent. After the loop was left,
// nothing waits for an input that waits for something else.
func TestReadAheadTakesNothingItDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return time.Second }}
		var taken []string
		done := make(chan struct{})
		input := func(yield func(refunds.Item) bool) {
			defer close(done)
			for item := range table(repeat(100, "a")...) {
				if !yield(item) {
					time.Sleep(time.Hour)
					return
				}
				taken = append(taken, item.Refund.RefundID)
			}
		}
		heard := 0
		o := refunds.BulkOptions{ReadAhead: true, Concurrency: 4, Abandoned: func(refunds.Submission) { heard++ }}
		for range s.warmClient(t).SubmitAll(t.Context(), input, o) {
			heard++
			break
		}
		if took := time.Since(s.began); took > 3*time.Second {
			t.Errorf("leaving took %v", took)
		}
		<-done
		if len(taken) != heard || len(s.ids()) < 4 || !slices.Contains(taken, slices.Max(s.ids())) {
			t.Errorf("taken %v, sent %v, heard of %d", taken, s.ids(), heard)
		}
	})
}

// A loop that is left after the end of its context waits for what the input gives back.
func TestReadAheadLeavesNoInputBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var inputEnded atomic.Bool
		input := func(yield func(refunds.Item) bool) {
			numbered(1)(yield)
			<-ctx.Done()
			time.Sleep(time.Second) // it gives something back
			inputEnded.Store(true)
		}
		for range (&service{}).client(t).SubmitAll(ctx, input, refunds.BulkOptions{ReadAhead: true}) {
			cancel()
			break
		}
		if !inputEnded.Load() {
			t.Error("the loop has ended before its input")
		}
		time.Sleep(time.Minute) // until the input has ended
	})
}

// An input that does not end with the context delays the end by the grace period.
func TestReadAheadDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		block := make(chan struct{})
		defer close(block)
		var input iter.Seq[refunds.Item] = func(func(refunds.Item) bool) { <-block }
		s := &service{}
		for range s.client(t).SubmitAll(ctx, input, refunds.BulkOptions{ReadAhead: true, Grace: 5 * time.Second}) {
		}
		if took := time.Since(s.began); took != 65*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A panic of the input reaches the loop's goroutine, after every record has its result.
func TestReadAheadPassesPanicsOn(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after the end": 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &service{latency: func(string) time.Duration { return time.Second }}
			input := func(yield func(refunds.Item) bool) {
				numbered(3)(yield)
				if wait > 0 {
					cancel()
				}
				time.Sleep(wait)
				panic("on purpose")
			}
			heard, panicked := heardOf(ctx, t, s.client(t), input, refunds.BulkOptions{ReadAhead: true})
			if panicked != "on purpose" || len(heard) != 3 {
				t.Errorf("%s: %v, heard of %v, sent %v", name, panicked, heard, s.ids())
			}
		})
	}
}
