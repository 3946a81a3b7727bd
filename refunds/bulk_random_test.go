package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// TestSubmitAllUnderRandomFaults draws inputs with doublets and unusable records,
// services that fail, stall and go away, consumers that are slow, leave, or end
// the context. Whatever comes, every record has one result, which agrees with
// what the service recorded.
func TestSubmitAllUnderRandomFaults(t *testing.T) {
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 500
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { drawBulk(t, seed).run() })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A randomBulk is one drawn case.
type randomBulk struct {
	*testing.T
	rnd      *rand.Rand
	inputs   []*refunds.Refund
	o        refunds.BulkOptions
	opts     []refunds.Option
	resubmit bool
	leaveAt  int           // results; -1: never
	endAfter time.Duration // 0: never
	slow     bool
	faults   []refundstest.Fault
	wire     *watchedWire

	results  map[int]int // by index
	outcomes []refunds.Outcome
	last     refunds.BulkProgress
	next     int
}

func drawBulk(t *testing.T, seed uint64) *randomBulk {
	rnd := rand.New(rand.NewPCG(seed, 2))
	pick := func(d ...time.Duration) time.Duration { return d[rnd.IntN(len(d))] }
	b := &randomBulk{T: t, rnd: rnd, leaveAt: -1, slow: rnd.IntN(4) == 0, results: map[int]int{}}
	ids := 1 + rnd.IntN(40)
	for i := range rnd.IntN(40) {
		// The transaction is the record, so that two with one id can be told apart.
		r := &refunds.Refund{RefundID: fmt.Sprint("rf_", rnd.IntN(ids)), TransactionID: strconv.Itoa(i)}
		switch rnd.IntN(30) {
		case 0:
			r = nil
		case 1:
			r.Currency = "\xff"
		}
		b.inputs = append(b.inputs, r)
	}
	b.outcomes = make([]refunds.Outcome, len(b.inputs))
	b.o = refunds.BulkOptions{
		Concurrency: 1 + rnd.IntN(12),
		Ordered:     rnd.IntN(2) == 0,
		Grace:       pick(0, -1, time.Second),
		GiveUpAfter: pick(0, 0, -1, 10*time.Second, time.Nanosecond),
		Progress:    func(p refunds.BulkProgress) { b.last = p },
		Abandoned:   b.take,
	}
	b.opts = []refunds.Option{refunds.WithMaxRetries(rnd.IntN(3))}
	if b.resubmit = rnd.IntN(5) == 0; b.resubmit {
		b.opts = append(b.opts, refunds.WithResubmit())
	}
	if rnd.IntN(3) == 0 {
		b.opts = append(b.opts, refunds.WithRateLimit(rate.Limit(1+rnd.IntN(20)), 1+rnd.IntN(3)))
	}
	if rnd.IntN(8) == 0 {
		b.opts = append(b.opts, refunds.WithAttemptTimeout(0))
	}
	switch rnd.IntN(4) {
	case 0:
		b.leaveAt = rnd.IntN(len(b.inputs) + 1)
	case 1:
		b.endAfter = 1 + time.Duration(rnd.Int64N(int64(pick(time.Second, 20*time.Second, 10*time.Minute))))
	}
	failing := rnd.IntN(60) // percent
	outage, until := rnd.IntN(60), 0
	if rnd.IntN(2) == 0 {
		until = outage + rnd.IntN(60)
	}
	for i := range 4 * len(b.inputs) {
		fault := refundstest.Fault{HeaderDelay: time.Duration(rnd.Int64N(int64(2 * time.Second)))}
		if rnd.IntN(100) < failing || outage <= i && i < until {
			fault = b.fault()
		}
		b.faults = append(b.faults, fault)
	}
	return b
}

func (b *randomBulk) fault() refundstest.Fault {
	switch b.rnd.IntN(10) {
	case 0:
		return refundstest.Fault{Refuse: true}
	case 1:
		return refundstest.Fault{DropBefore: true}
	case 2:
		return refundstest.Fault{DropAfter: true, HeaderDelay: time.Second}
	case 3:
		return refundstest.Fault{HeaderDelay: 10 * time.Minute}
	case 4:
		return refundstest.Fault{Truncate: 1}
	case 5:
		return refundstest.Fault{ContentType: "text/html", Body: "<html>"}
	case 6:
		return refundstest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Duration(b.rnd.IntN(3)) * 40 * time.Second}
	case 7:
		return refundstest.Fault{Status: []int{500, 502, 503, 504}[b.rnd.IntN(4)], Process: b.rnd.IntN(2) == 0}
	}
	return refundstest.Fault{Status: []int{400, 401, 403, 404, 409, 422, 307, 501}[b.rnd.IntN(8)]}
}

func (b *randomBulk) run() {
	fake := refundstest.NewServer(b.T)
	fake.Script(b.faults...)
	b.wire = &watchedWire{next: fake.HTTPClient().Transport, flying: map[string]int{}}
	client := fake.Client(append(b.opts, refunds.WithHTTPClient(&http.Client{Transport: b.wire}))...)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var endedAt time.Time
	if b.endAfter > 0 {
		time.AfterFunc(b.endAfter, func() { endedAt = time.Now(); cancel() })
	}
	taken, end := 0, error(nil)
	reused := new(refunds.Refund)
	left := false
	for s, err := range client.SubmitAll(ctx, "acct", func(yield func(*refunds.Refund) bool) {
		for _, r := range b.inputs {
			taken++
			if r != nil {
				*reused = *r // which the input may do, as records are encoded when they are taken
				r = reused
			}
			if !yield(r) {
				return
			}
		}
	}, b.o) {
		if end != nil || left {
			b.Error("a result after the end")
		}
		if s.Index < 0 {
			end = err
			continue
		}
		if b.o.Ordered && s.Index != b.next {
			b.Errorf("result %d at the place of %d", s.Index, b.next)
		}
		b.next++
		b.take(s, err)
		if left = b.next == b.leaveAt; left {
			break
		}
		if b.slow {
			time.Sleep(time.Duration(b.rnd.Int64N(int64(5 * time.Second))))
		}
	}
	if b.wire.inFlight() != 0 {
		b.Error("requests are left")
	}
	if !endedAt.IsZero() && !b.slow {
		allowed := max(0, b.o.Grace)
		if b.o.Grace == 0 {
			allowed = 30 * time.Second
		}
		if late := time.Since(endedAt) - allowed; late > 0 {
			b.Errorf("ended %v after the grace", late)
		}
	}
	switch {
	case left:
	case end != nil && (endedAt.IsZero() || !errors.Is(end, context.Canceled) || !errors.Is(end, refunds.ErrNotSent)):
		b.Errorf("ended by %v", end)
	case end == nil && taken != len(b.inputs):
		b.Errorf("%d of %d inputs taken", taken, len(b.inputs))
	}
	b.check(taken, fake.Recorded())
}

// take notes a result, and whether it agrees with itself.
func (b *randomBulk) take(s refunds.Submission, err error) {
	b.results[s.Index]++
	b.outcomes[s.Index] = s.Outcome
	r := b.inputs[s.Index]
	outcome, failed := errors.AsType[*refunds.OutcomeError](err)
	matching := map[refunds.Outcome]error{refunds.OutcomeNotSent: refunds.ErrNotSent, refunds.OutcomeRejected: refunds.ErrRejected,
		refunds.OutcomeUnknown: refunds.ErrOutcomeUnknown}
	matches := 0
	for _, condition := range matching {
		if errors.Is(err, condition) {
			matches++
		}
	}
	switch {
	case err == nil && (s.Outcome != refunds.OutcomeAccepted || s.Receipt == nil || s.Receipt.Attempts != s.Attempts),
		err != nil && (!failed || s.Receipt != nil || matches != 1 || outcome.Outcome != s.Outcome || outcome.RefundID != s.RefundID),
		r != nil && s.RefundID != r.RefundID,
		(r == nil || r.Currency != "") != errors.Is(err, refunds.ErrInvalidArgument),
		errors.Is(err, refunds.ErrSuspended) && (s.Attempts > 0 || s.Outcome != refunds.OutcomeNotSent || b.o.GiveUpAfter < 0):
		b.Errorf("%v of %v: %+v, %v", s, r, s.Receipt, err)
	}
}

// check holds the results against the input and the service's own record.
func (b *randomBulk) check(taken int, all []refundstest.Recorded) {
	recorded := map[int]int{}
	latest := map[string]int{}
	for _, entry := range all {
		i, err := strconv.Atoi(entry.Refund.TransactionID)
		if err != nil || entry.AccountID != "acct" || entry.Refund.RefundID != b.inputs[i].RefundID {
			b.Fatalf("recorded %v", entry)
		}
		if before, ok := latest[entry.Refund.RefundID]; ok && before > i {
			b.Errorf("record %d was recorded after %d", i, before)
		}
		latest[entry.Refund.RefundID] = i
		recorded[i]++
	}
	sums := map[refunds.Outcome]int{}
	for i := range taken {
		if b.results[i] != 1 {
			b.Errorf("record %d has %d results", i, b.results[i])
		}
		sums[b.outcomes[i]]++
		n, most := recorded[i], 1
		if b.resubmit {
			most = n
		}
		switch b.outcomes[i] {
		case refunds.OutcomeAccepted:
			if n == 0 || n > most {
				b.Errorf("record %d was accepted, and recorded %d times", i, n)
			}
		case refunds.OutcomeUnknown:
			if n > most {
				b.Errorf("record %d was recorded %d times", i, n)
			}
		default:
			if n > 0 {
				b.Errorf("record %d was %v, and recorded", i, b.outcomes[i])
			}
		}
	}
	if len(b.results) != taken {
		b.Errorf("%d records taken, %d have results", taken, len(b.results))
	}
	if b.wire.most > b.o.Concurrency || b.wire.doubled {
		b.Errorf("%d in flight of %d, one refund_id twice: %v", b.wire.most, b.o.Concurrency, b.wire.doubled)
	}
	p := b.last
	want := refunds.BulkProgress{Taken: taken, Done: taken, Accepted: sums[refunds.OutcomeAccepted], Rejected: sums[refunds.OutcomeRejected],
		NotSent: sums[refunds.OutcomeNotSent], Unknown: sums[refunds.OutcomeUnknown], Requests: b.wire.requests, Retries: p.Retries, Paused: p.Paused}
	if taken > 0 && p != want {
		b.Errorf("progress is %+v, want %+v", p, want)
	}
}
