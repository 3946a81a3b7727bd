package bins

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/transport"
)

// A batch is the lookups of one request.
type batch struct {
	lookups []*lookup
	control bool // the request repeats cards that the service has answered before

	failures  int       // failures so far by the service's fault
	failedAt  time.Time // the first of them
	faults    int       // failures among them that the batch itself may have caused
	after     int       // sent again after this number of answered requests
	notBefore int       // and not before this request
	good, bad int       // when it failed first: see health

	refusal error // of the request, before any had a result
}

// A flight is a request on its way.
type flight struct {
	batch   *batch
	request int  // number of the request in the window
	early   bool // it left before any request had a result
	probe   bool
	clock   transport.Clock
}

// check looks lookups up in the caller's cache.
func (b *bulkRun) check() {
	lookups := takeBatch(&b.unchecked)
	b.checking++
	b.loop.Start(func() func() {
		missed := b.memory.fetch(b.ctx, lookups)
		return func() {
			b.checking--
			b.unsent = append(b.unsent, missed...)
			b.end(slices.DeleteFunc(lookups, func(l *lookup) bool { return !l.reused }), nil)
		}
	}, nil)
}

// takeBatch removes the lookups of a batch.
func takeBatch(from *[]*lookup) []*lookup {
	n := min(MaxCards, len(*from))
	taken := slices.Clone((*from)[:n])
	*from = slices.Delete(*from, 0, n)
	return taken
}

// fill makes batches of the unsent lookups.
func (b *bulkRun) fill() {
	for _, group := range match.Apart(takeBatch(&b.unsent), (*lookup).identifier) {
		b.batches = append(b.batches, &batch{lookups: group})
	}
}

// A turn says which batch is sent next.
type turn int

const (
	noTurn turn = iota
	ofFailed
	ofBatch
	ofControl
)

// due returns the turn of the next request. A failed batch is sent again after others were
// answered, or if there are no others. Controls are sent instead in an outage, and if the
// batch itself may be the cause: they show whether only this batch fails or the whole
// service is down.
func (b *bulkRun) due() turn {
	switch {
	case b.health.isRefused(): // a request in flight may still show that not all are
		return noTurn
	case len(b.failed) > 0 && b.health.answered >= b.failed[0].after && b.health.sent >= b.failed[0].notBefore:
		return ofFailed
	case len(b.batches) > 0:
		return ofBatch
	case len(b.failed) == 0 || !b.loop.Ended && !b.overdue && !b.isFull():
		return noTurn
	case b.health.control == "" || b.failed[0].faults == 0 && !b.health.window.State().Paused:
		return ofFailed
	case b.inFlight == 0:
		return ofControl
	}
	return noTurn
}

// send sends the batch that is next.
func (b *bulkRun) send(turn turn) {
	var next *batch
	switch turn {
	case ofFailed:
		next = takeFirst(&b.failed)
	case ofBatch:
		next = takeFirst(&b.batches)
		b.progress.Distinct += len(next.lookups)
	case ofControl:
		next = &batch{lookups: []*lookup{{sent: b.health.control}}, control: true}
	}
	f := &flight{batch: next, early: !b.health.works, probe: b.health.window.State().Paused}
	var free bool
	if f.request, free = b.health.window.Take(); !free {
		panic("bins: no place in the window")
	}
	b.health.sent++
	b.inFlight++
	packs := b.memory.packs() && !next.control
	b.loop.Start(func() func() {
		var body *bytes.Buffer
		r := b.memory.request(b.ctx, b.client, next.lookups, transport.Call{
			Bulk: true, Single: true, Clock: &f.clock,
			KeepBody: func(kept *bytes.Buffer) { body = kept },
		}, b.settings)
		if next.control {
			if body != nil {
				transport.ReleaseBody(body)
			}
		} else {
			b.memory.take(r, body, packs)
		}
		if len(r.values) > 0 {
			b.loop.Tasks.Go(func() { b.memory.share(b.ctx, r.values) }) // results do not wait for the caller's cache
		}
		return func() { b.settle(f, r) }
	}, nil)
}

func takeFirst(from *[]*batch) *batch {
	first := (*from)[0]
	*from = slices.Delete(*from, 0, 1)
	return first
}

// settle ends the lookups of a request, unless its batch will be sent again.
func (b *bulkRun) settle(f *flight, r *response) {
	b.inFlight--
	b.progress.Requests += r.attempts
	b.progress.Unread += r.unread
	b.progress.Retries += max(0, r.attempts-1)
	if f.batch.control || f.batch.failures > 0 || f.batch.refusal != nil {
		b.progress.Retries += min(1, r.attempts)
	}
	m := meaningOf(b.ctx, r.err, b.health.works)
	b.health.settle(f, r, m)
	switch {
	case f.batch.control:
	case m == bulk.End || b.fatal != nil && r.err != nil: // its lookups end with all others
	case m == bulk.Outage && !b.health.isAtFault(f.batch):
		b.failed = append(b.failed, f.batch)
	case m == bulk.Success && r.err != nil && f.early:
		f.batch.refusal = r.err
		b.refused = append(b.refused, f.batch)
	default:
		b.memory.keep(r)
		b.end(f.batch.lookups, r.err)
	}
	if b.health.works {
		b.endRefused()
	}
	if m == bulk.End {
		b.fatal = cmp.Or(b.fatal, r.err)
	} else if b.health.isRefused() && b.inFlight == 0 {
		b.fatal = cmp.Or(b.fatal, b.health.refusal)
	}
	b.report()
}

// endRefused ends the lookups that were refused before any request had a result. Until then the
// service may refuse all, and they end with the lookup as suspended. Once it works, they are sent
// again: it may have refused all until then.
func (b *bulkRun) endRefused() {
	for _, refused := range b.refused {
		if b.health.works || meaningOf(b.ctx, refused.refusal, true) == bulk.Outage {
			b.failed = append(b.failed, refused)
		} else {
			b.end(refused.lookups, refused.refusal)
		}
	}
	b.refused = nil
}

// end ends lookups, with err for all of them unless it is nil. If the service is to blame, an
// expired card in the memory is used.
func (b *bulkRun) end(lookups []*lookup, err error) {
	for _, l := range lookups {
		l.err = cmp.Or(err, l.err)
		if isOutage(err) {
			if known := b.memory.findStale(l.sent); known != nil {
				r := known.result()
				r.Stale, l.err = true, nil
				l.reuse(&r)
			}
		}
		b.order.end(l)
	}
}
