package bins

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/carddata/carddata-go/internal/transport"
)

// A batch is the lookups of one request.
type batch struct {
	lookups  []*lookup
	failed   bool // before, when there were so many successes
	failedAt int
	faults   int // times that it failed while others succeeded
}

// start runs a task on a goroutine of its own, and then what it returns on the loop's.
func (b *bulkRun) start(task func() (event func())) {
	b.running++
	b.tasks.Go(func() {
		var event func()
		defer func() {
			if panicked := recover(); event == nil {
				event = func() { panic(cmp.Or(panicked, any(errPanicked))) } // where the caller can recover
			}
			b.events <- event
		}()
		event = task()
	})
}

// check looks lookups up in the caller's cache.
func (b *bulkRun) check() {
	lookups := takeBatch(&b.unchecked)
	b.checking++
	b.start(func() func() {
		missed := b.store.fetch(b.ctx, lookups)
		return func() {
			b.checking--
			b.unsent = append(b.unsent, missed...)
			b.end(slices.DeleteFunc(lookups, func(l *lookup) bool { return !l.reused }), nil)
		}
	})
}

// takeBatch removes the lookups of a batch.
func takeBatch(from *[]*lookup) []*lookup {
	n := min(MaxCards, len(*from))
	taken := slices.Clone((*from)[:n])
	*from = slices.Delete(*from, 0, n)
	return taken
}

// fillBatches makes batches of what is unsent and did not become known meanwhile.
func (b *bulkRun) fillBatches() {
	if b.o.Ranges {
		b.unsent = slices.DeleteFunc(b.unsent, func(l *lookup) bool {
			if known := b.store.find(l.sent); known != nil {
				r := known.result(l.sent)
				l.reuse(&r)
				b.end([]*lookup{l}, nil)
			}
			return l.done
		})
		if !b.isBatch(b.unsent) {
			return
		}
	}
	for _, group := range apart(takeBatch(&b.unsent)) {
		b.batches = append(b.batches, &batch{lookups: group})
	}
}

// due returns the queue whose first batch is to be sent next; nil: none is. One that
// failed is sent again when others have succeeded since, or if there are no others: the
// service may fail for what this one holds.
func (b *bulkRun) due() *[]*batch {
	if len(b.failed) > 0 {
		last := len(b.batches) == 0 && (b.ended || b.overdue || b.isFull())
		if last || b.successes > b.failed[0].failedAt {
			return &b.failed
		}
	}
	if len(b.batches) > 0 {
		return &b.batches
	}
	return nil
}

// send sends the first batch of a queue.
func (b *bulkRun) send(from *[]*batch) {
	next := (*from)[0]
	*from = slices.Delete(*from, 0, 1)
	if !next.failed {
		b.progress.Distinct += len(next.lookups)
	}
	opts, packs := b.opts, b.packs()
	if b.breaker.Open() {
		opts = append(slices.Clone(opts), WithMaxRetries(0)) // a probe
	}
	b.breaker.Sent()
	b.inFlight++
	b.start(func() func() {
		var body *bytes.Buffer
		call := transport.Call{Bulk: true, KeepBody: func(kept *bytes.Buffer) { body = kept }}
		r := b.store.request(b.ctx, b.client, next.lookups, call, opts)
		if r.body = body; packs {
			r.values = b.store.keep(next.lookups)
			r.release()
		} else if r.body != nil && b.keptBytes.Add(r.size()) > 2*maxKeptBytes { // the loop is behind
			b.keptBytes.Add(-r.size())
			r.release()
		}
		if len(r.values) > 0 {
			b.tasks.Go(func() { b.store.share(b.ctx, r.values) }) // results do not wait for it
		}
		return func() { b.settle(next, r) }
	})
}

// release ends the keeping of a response's text.
func (r *response) release() {
	if r.body != nil {
		transport.ReleaseBody(r.body)
	}
	r.body = nil
}

// settle resolves the lookups of a batch, unless it is to be sent again.
func (b *bulkRun) settle(sent *batch, r *response) {
	b.inFlight--
	b.progress.Requests += r.attempts
	b.progress.Retries += max(0, r.attempts-1)
	if r.err != nil && (b.fatal != nil || isPermanent(b.ctx, r.err, b.works)) {
		b.fatal = cmp.Or(b.fatal, r.err)
		return
	}
	b.keep(r)
	b.works = b.works || r.err == nil
	// Where the service has worked before, a page in its place is an outage, too.
	outage := r.err != nil && (isOutage(r.err) || b.works && errors.Is(r.err, ErrBadResponse))
	b.tellBreaker(outage, r)
	if !outage || !b.isSentAgain(sent, r) {
		if outage && b.suspended != nil {
			r.err = b.suspended
		}
		b.end(sent.lookups, r.err)
	}
	b.report()
}

// tellBreaker tells the breaker of a request, and gives up when it is time for that.
func (b *bulkRun) tellBreaker(outage bool, r *response) {
	if !outage {
		b.successes++
		b.lastFailed = nil
	}
	giveUp := b.breaker.Settled(outage)
	// Each retry is a failure of its own, but none opens the breaker twice.
	for range r.attempts - 1 {
		if outage && !b.breaker.Open() {
			giveUp = b.breaker.Settled(true)
		}
	}
	b.progress.Paused = b.breaker.Open()
	if !giveUp || b.suspended != nil {
		return
	}
	b.suspended = bulkError(transport.NewError(ErrSuspended.Error(), ErrSuspended, r.err))
	for _, batch := range slices.Concat(b.batches, b.failed, []*batch{{lookups: b.unchecked}, {lookups: b.unsent}}) {
		b.end(batch.lookups, b.suspended)
	}
	b.batches, b.failed, b.unchecked, b.unsent = nil, nil, nil, nil
}

// isSentAgain keeps a batch that failed by the service's fault to be sent again, until it
// gives up. A batch that fails over and over while others succeed, or that alone fails
// since others did, fails for what it holds; but not if it was not sent.
func (b *bulkRun) isSentAgain(failed *batch, r *response) bool {
	const ownFault = 8
	if b.lastFailed != failed {
		b.failedAlone, b.lastFailed = 0, failed
	}
	if e, _ := errors.AsType[*Error](r.err); r.attempts > 0 && e.StatusCode != http.StatusUnauthorized {
		b.failedAlone++
		if b.successes > failed.failedAt && !b.breaker.Open() {
			failed.faults++
		}
	}
	if b.suspended != nil || failed.faults >= ownFault || b.successes > 0 && b.failedAlone >= ownFault {
		return false
	}
	failed.failed, failed.failedAt = true, b.successes
	b.failed = append(b.failed, failed)
	return true
}

// end resolves lookups, with an error for all of them if there is one: those of which
// the memory has a stale result get that if the service fails.
func (b *bulkRun) end(lookups []*lookup, err error) {
	b.settled = true
	for _, l := range lookups {
		l.done, l.err = true, cmp.Or(err, l.err)
		if err == nil || !isOutage(err) {
			continue
		}
		if known := b.store.findStale(l.sent); known != nil {
			r := known.result(l.sent)
			r.Stale, l.err = true, nil
			l.reuse(&r)
		}
	}
}
