//go:build unix

package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/carddata/carddata-go/refunds"
)

// enqueueAll enqueues items, and fails the test if it ends early.
func (s *system) enqueueAll(items iter.Seq[Item]) (places []Enqueued) {
	s.t.Helper()
	for e, err := range s.box.EnqueueAll(s.t.Context(), items) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Index != len(places) {
			s.t.Errorf("item %d in place %d", e.Index, len(places))
		}
		places = append(places, e)
	}
	return places
}

// TestEnqueueAll: the items of a file are taken as Enqueue takes each of them, and the same file again
// changes nothing.
func TestEnqueueAll(t *testing.T) {
	eachDatabase(t, func(t *testing.T, database string) {
		s := newSystemOn(t, database)
		s.enqueue(refund("before", 5))
		update := func(id string, amount int64, status string) *refunds.Refund {
			r := refund(id, amount)
			r.SVCCodes.SVCRefundStatus = status
			return r
		}
		tests := []struct {
			item Item
			err  error
			new  bool
		}{
			{Item{"acct", refund("a", 5), false}, nil, true},
			{Item{"acct", refund("before", 5), false}, nil, false},
			{Item{"acct", refund("before", 6), false}, ErrAmountChanged, false},
			{Item{"acct", nil, false}, refunds.ErrInvalidArgument, false},
			{Item{"acct", update("a", 5, "one"), false}, nil, true},
			{Item{"acct", refund("a", 5), false}, nil, false},
			{Item{"acct", refund("a", 6), false}, ErrAmountChanged, false},
			{Item{"acct", update("a", 5, "two"), false}, nil, true},
			{Item{"acct", refund("a", 7), true}, nil, true},
			{Item{"acct", update("a", 5, "three"), false}, ErrAmountChanged, false},
			{Item{"acct", update("a", 7, "é\x01\"'"), false}, nil, true},
			{Item{"other", refund("a", 8), false}, nil, true},
			{Item{"other", &refunds.Refund{RefundID: "no amount"}, false}, nil, true},
		}
		items := func(yield func(Item) bool) {
			for _, test := range tests {
				if !yield(test.item) {
					return
				}
			}
		}
		for again := range 2 {
			for i, e := range s.enqueueAll(items) {
				want := tests[i]
				if e.New != (want.new && again == 0) || !errors.Is(e.Err, want.err) || (e.Row != 0) == (want.err == refunds.ErrInvalidArgument) {
					t.Errorf("%d: %+v", i, e)
				}
				if e.Err != nil {
					continue
				}
				b, err := newBooking(want.item)
				if content := s.column(`SELECT content FROM outbox_refund WHERE id = $1`, e.Row); err != nil || content != b.content {
					t.Errorf("%d: row %d has %s, want %s", i, e.Row, content, b.content)
				}
			}
		}
		if got := s.column(`SELECT CAST(amount AS TEXT) FROM outbox_refund WHERE account = 'acct' AND refund_id = 'a' ORDER BY id`); got != "5 5 5 7 7" {
			t.Errorf("the records are in the order %s", got)
		}
		rows := s.column(`SELECT CAST(id AS TEXT) FROM outbox_refund ORDER BY id`)
		if jobs := s.column(`SELECT args->>'row' FROM ` + s.box.river("job") + ` ORDER BY id`); jobs != rows {
			t.Errorf("the jobs are of the rows %s, want %s", jobs, rows)
		}
	})
}

// TestEnqueueAllBatches: what was yielded before EnqueueAll ends early is booked.
func TestEnqueueAllBatches(t *testing.T) {
	s := newSystem(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items := func(yield func(Item) bool) {
		for i := range batchSize + 2 {
			if i == batchSize+1 {
				cancel()
			}
			if !yield(Item{AccountID: "acct", Refund: refund(fmt.Sprint(i), 5)}) {
				return
			}
		}
	}
	var booked int
	var end error
	for e, err := range s.box.EnqueueAll(ctx, items) {
		if end != nil {
			t.Error("an error was not the end")
		}
		if end = err; err == nil && e.New {
			booked++
		}
	}
	if n := s.column(`SELECT CAST(COUNT(*) AS TEXT) FROM outbox_refund`); booked != batchSize || n != fmt.Sprint(booked) || !errors.Is(end, context.Canceled) {
		t.Errorf("%d of %s are booked; %v", booked, n, end)
	}
	again := s.enqueueAll(items)
	if n := len(slices.DeleteFunc(again, func(e Enqueued) bool { return !e.New })); n != 2 {
		t.Errorf("%d more are booked", n)
	}
}
