package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// A submitAll is a call of SubmitAll, over refunds of which some share an id.
type submitAll struct {
	patience
	refunds     int
	ids         int
	concurrency int
	ordered     bool
	grace       time.Duration
	giveUpAfter time.Duration
	leaves      int // the loop after so many results; 0: stays
}

func drawSubmitAll(c chance, _ int) workload {
	s := submitAll{
		patience: drawPatience(c), refunds: 1 + c.IntN(40), concurrency: 1 + c.IntN(5), ordered: c.percent(30),
		grace: pick(c, -1, time.Millisecond, time.Second, 30*time.Second), giveUpAfter: pick(c, time.Second, time.Minute, 30*time.Minute),
	}
	s.ids = pick(c, s.refunds, s.refunds, 1+s.refunds/3)
	if c.percent(15) {
		s.leaves = 1 + c.IntN(s.refunds)
	}
	return s
}

func (s submitAll) play(w *world) {
	client, err := w.refundClient()
	if !w.must(err) {
		return
	}
	ctx, c, stop := w.call("bulk submission", s.patience, 0)
	defer stop()
	c.concurrency = s.concurrency
	if !c.ends.IsZero() {
		c.ends = c.ends.Add(max(0, s.grace))
	}
	list := make([]*refunds.Refund, s.refunds)
	for i := range list {
		list[i] = refundOf(i)
		list[i].RefundID = fmt.Sprintf("rf_%d", i%s.ids)
	}
	told := make([]bool, s.refunds)
	hear := func(one refunds.Submission, err error) {
		if one.Index < 0 || one.Index >= len(list) || told[one.Index] || one.RefundID != list[one.Index].RefundID {
			w.violate(outcome, "%s: result %d of refund %s is none of a record, or a second one", c, one.Index, one.RefundID)
			return
		}
		told[one.Index] = true
		checkOutcome(c, list[one.Index], err)
		if sent := w.wire.sentOf(bodyOf(list[one.Index])); sent != one.Attempts {
			w.violate(miscounted, "%s: refund %d: %d attempts reported, %d made", c, one.Index, one.Attempts, sent)
		}
	}
	next, results := 0, 0
	var ended error
	for one, err := range client.SubmitAll(ctx, accountID, slices.Values(list), refunds.BulkOptions{
		Concurrency: s.concurrency, Ordered: s.ordered, Grace: s.grace, GiveUpAfter: s.giveUpAfter, Abandoned: hear,
	}) {
		if one.Index < 0 {
			ended = err
			checkRefundError(c, err)
			continue
		}
		if s.ordered && one.Index != next {
			w.violate(outcome, "%s: result %d in place of %d", c, one.Index, next)
		}
		next = one.Index + 1
		hear(one, err)
		if results++; results == s.leaves {
			break
		}
	}
	c.returned(ended, -1)
	for i, heard := range told {
		switch {
		case heard:
		case ended == nil && results != s.leaves:
			w.violate(outcome, "%s: refund %d has no result", c, i)
		case w.service.records(list[i]) > 0 || w.wire.sentOf(bodyOf(list[i])) > 0:
			w.violate(outcome, "%s: refund %d was sent, and has no result", c, i)
		}
	}
	for i := s.ids; i < len(list); i++ {
		if !w.wire.inTurn(c, bodyOf(list[i-s.ids]), bodyOf(list[i])) {
			w.violate(outcome, "%s: refund %d did not wait for the one before it with its id", c, i)
		}
	}
}
