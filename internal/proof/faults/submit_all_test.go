package faults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// A submitAll is a call of SubmitAll. Some of its refunds share an account and an id, and
// some cannot be sent.
type submitAll struct {
	patience
	items       []submitItem
	concurrency int
	slowInput   bool
	slowLoop    bool
	grace       time.Duration
	giveUpAfter time.Duration
	leaves      int // the loop after so many results; 0: stays
}

type submitItem struct {
	account, id string
	n           int    // of the refund
	unusable    string // why
	own         bool   // it has options of its own
}

func (it submitItem) key() string { return it.account + " " + it.id }

func drawSubmitAll(c chance, _ int) workload {
	n := 1 + c.IntN(40)
	s := submitAll{
		patience: drawPatience(c), concurrency: 1 + c.IntN(5),
		slowInput: c.percent(15), slowLoop: c.percent(15),
		grace:       pick(c, -1, time.Millisecond, time.Second, 30*time.Second),
		giveUpAfter: pick(c, -1, time.Nanosecond, time.Second, time.Minute, 30*time.Minute, 30*time.Minute),
	}
	ids, accounts := pick(c, n, n, 1+n/3), pick(c, 1, 1, 3)
	for i := range n {
		it := submitItem{account: fmt.Sprint("acct/", 7+c.IntN(accounts)), id: fmt.Sprint("rf_", i%ids), n: i, own: c.percent(5)}
		if c.percent(5) {
			it.unusable = pick(c, "no refund", "no text", "no account", "no header")
		}
		s.items = append(s.items, it)
	}
	if c.percent(15) {
		s.leaves = 1 + c.IntN(n)
	}
	return s
}

// input is what is submitted.
func (s submitAll) input() []refunds.Item {
	list := make([]refunds.Item, len(s.items))
	for i, it := range s.items {
		refund := refundOf(it.n)
		refund.RefundID = it.id
		list[i] = refunds.Item{AccountID: it.account, Refund: refund}
		if it.own {
			list[i].Options = []refunds.CallOption{refunds.WithHeader("X-Record", strconv.Itoa(i))}
		}
		switch it.unusable {
		case "no refund":
			list[i].Refund = nil
		case "no text":
			refund.Currency = "\xff"
		case "no account":
			list[i].AccountID = ""
		case "no header":
			list[i].Options = []refunds.CallOption{refunds.WithHeader("bad name", "")}
		}
	}
	return list
}

func (s submitAll) play(w *world) { s.call(w, w.refundClient(), "bulk submission") }

func (s submitAll) call(w *world, client *refunds.Client, name string) {
	ctx, c, stop := w.call(name, s.patience, 0)
	defer stop()
	c.concurrency, c.beginnings = s.concurrency, probes // of what was proven not to be recorded
	if !c.ends.IsZero() {
		c.ends = c.ends.Add(max(0, s.grace))
	}
	list := s.input()
	for i, it := range s.items {
		if it.unusable == "" {
			w.service.assign(bodyOf(list[i].Refund), it.account)
		}
	}
	told := &submissions{submitAll: s, c: c, list: list, heard: make([]bool, len(list)), errs: make([]error, len(list)), outcomes: map[refunds.Outcome]int{}}
	var progress refunds.BulkProgress
	options := refunds.BulkOptions{
		Concurrency: s.concurrency, Grace: s.grace, GiveUpAfter: s.giveUpAfter,
		Abandoned: told.hear, Progress: func(p refunds.BulkProgress) { progress = p },
	}
	reused := new(refunds.Refund) // records are encoded when they are taken
	input := func(yield func(refunds.Item) bool) {
		for _, item := range list {
			if item.Refund != nil {
				*reused = *item.Refund
				item.Refund = reused
			}
			if s.slowInput {
				c.hold(10 * time.Millisecond)
			}
			if !yield(item) {
				return
			}
		}
	}
	results := 0
	var ended error
	thrown := !c.guard(func() {
		for one, err := range client.SubmitAll(ctx, input, options) {
			if err != nil {
				ended = err
				if e, ok := errors.AsType[*refunds.Error](err); !ok || !hasCondition(e) || errors.Is(err, refunds.ErrNotSent) || errors.Is(err, refunds.ErrRejected) {
					w.violate(untyped, "%s: ended by %T: %v", c, err, err)
				}
				continue
			}
			told.hear(one)
			if results++; results == s.leaves {
				c.left = true
				break
			}
			if pause := w.chance(fmt.Sprint("pause after ", one.Index)); s.slowLoop && pause.percent(20) {
				c.hold(pause.within(5 * time.Second))
			}
		}
	})
	if !thrown {
		c.returned(ended, -1)
	}
	w.arrive()
	told.check(ended != nil || c.left || thrown)
	if !thrown && told.sum > 0 {
		told.checkProgress(progress)
	}
}

// submissions are the results of a bulk submission.
type submissions struct {
	submitAll
	c        *call
	list     []refunds.Item
	heard    []bool
	errs     []error
	sum      int
	requests int
	outcomes map[refunds.Outcome]int
}

// hear takes a result in.
func (s *submissions) hear(one refunds.Submission) {
	w, i, err := s.c.w, one.Index, one.Err
	if i < 0 || i >= len(s.list) || s.heard[i] {
		w.violate(outcome, "%s: result %d is none of a record, or a second one", s.c, i)
		return
	}
	s.heard[i], s.errs[i] = true, err
	s.sum, s.requests = s.sum+1, s.requests+one.Attempts
	s.outcomes[one.Outcome]++
	item, sent := s.list[i], 0
	id := ""
	if item.Refund != nil {
		id = item.Refund.RefundID
	}
	if s.items[i].unusable == "" {
		sent = w.wire.sentBy(s.c, bodyOf(item.Refund))
	}
	suspended := errors.Is(err, refunds.ErrSuspended)
	switch {
	case one.RefundID != id || one.AccountID != item.AccountID:
		w.violate(outcome, "%s: result %d names refund %s of %s", s.c, i, one.RefundID, one.AccountID)
	case sent != one.Attempts || one.Receipt != nil && one.Receipt.Attempts != sent:
		w.violate(miscounted, "%s: refund %d: %d attempts reported, %d made", s.c, i, one.Attempts, sent)
	case (err == nil) != (one.Outcome == refunds.OutcomeAccepted && one.Receipt != nil):
		w.violate(outcome, "%s: refund %d is %v, with %v", s.c, i, one.Outcome, err)
	case (s.items[i].unusable != "") != errors.Is(err, refunds.ErrInvalidArgument):
		w.violate(outcome, "%s: refund %d with %q: %v", s.c, i, s.items[i].unusable, err)
	case suspended && one.Outcome == refunds.OutcomeRejected && slices.Contains([]refunds.Action{refunds.ActionResubmit, refunds.ActionFixSetup}, one.Action()):
		// Its retry was held back, perhaps because of the setup.
	case suspended && one.Outcome != refunds.OutcomeNotSent && !(w.settings.resubmit && one.Outcome == refunds.OutcomeUnknown):
		w.violate(outcome, "%s: refund %d was given up after %d attempts: %v, %v", s.c, i, one.Attempts, one.Action(), err)
	}
}

// check compares what was told with the service's record, and finds records without
// a result where the submission had no early end.
func (s *submissions) check(early bool) {
	c, w := s.c, s.c.w
	latest := map[string]int{}
	for i, it := range s.items {
		if it.unusable != "" {
			if !s.heard[i] && !early {
				w.violate(outcome, "%s: refund %d has no result", c, i)
			}
			continue
		}
		refund := s.list[i].Refund
		switch {
		case s.heard[i]:
			checkOutcome(c, refund, s.errs[i])
		case !early:
			w.violate(outcome, "%s: refund %d has no result", c, i)
		case w.service.records(refund) > 0 || w.wire.sentBy(c, bodyOf(refund)) > 0:
			w.violate(outcome, "%s: refund %d was sent, and has no result", c, i)
		}
		if before, ok := latest[it.key()]; ok && !w.wire.inTurn(c, bodyOf(s.list[before].Refund), bodyOf(refund)) {
			w.violate(outcome, "%s: refund %d did not wait for the one before it with its id", c, i)
		}
		latest[it.key()] = i
	}
}

// checkProgress compares the last progress with the results.
func (s *submissions) checkProgress(p refunds.BulkProgress) {
	want := refunds.BulkProgress{
		Taken: s.sum, Done: s.sum, Accepted: s.outcomes[refunds.OutcomeAccepted], Rejected: s.outcomes[refunds.OutcomeRejected],
		NotSent: s.outcomes[refunds.OutcomeNotSent], Unknown: s.outcomes[refunds.OutcomeUnknown],
		Requests: s.requests, Retries: p.Retries,
		Stats: p.Stats,
	}
	if p != want {
		s.c.w.violate(miscounted, "%s: progress is %+v, want %+v", s.c, p, want)
	}
}
