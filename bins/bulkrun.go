package bins

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of LookupAll. All but the requests happens on the
// goroutine that ranges over it.
type bulkRun struct {
	ctx      context.Context
	cancel   context.CancelFunc
	requests sync.WaitGroup
	client   *Client
	o        BulkOptions
	yield    func(BulkResult, error) bool
	answers  *answerStore

	inputs    int
	waiting   []waitingInput // until their result is yielded, in its order
	scattered int            // inputs that wait with their lookups, in no order
	lookups   map[string]*lookup
	unsent    []*lookup
	unpacked  int           // lookups whose answer cannot rest, or is still to come
	whole     atomic.Int64  // answers that could rest and do not
	queue     chan struct{} // a place for each request that waits for one on the wire
	wire      chan struct{} // a place for each request that has no answer yet
	open      int           // requests that were not received
	answered  chan answeredBatch
	fatal     error
	progress  BulkProgress
}

// A waitingInput has its answer at rest, or a lookup that will bring it.
type waitingInput struct {
	index  int
	input  Identifier
	known  *entry
	lookup *lookup
	first  bool // to need this lookup
}

func (w *waitingInput) ready() bool { return w.known != nil || w.lookup.resolved }

type answeredBatch struct {
	lookups []*lookup
	delivery
}

func newBulk(ctx context.Context, c *Client, o BulkOptions, yield func(BulkResult, error) bool) (*bulkRun, error) {
	var err error
	switch {
	case c == nil || c.core == nil:
		err = transport.Invalid("the client was not made by NewClient")
	case ctx == nil:
		err = transport.Invalid("the context is nil")
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		err = transport.Invalid("the concurrency is %d, 0 to %d allowed", o.Concurrency, maxConcurrency)
	default:
		err = checkPrefix(o.PrefixLength)
	}
	if err != nil {
		return nil, &Error{Operation: "lookup all", Err: err}
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaultConcurrency
	}
	b := &bulkRun{
		client: c, o: o, yield: yield,
		answers:  newAnswerStore("lookup all", o.Cache, bulkEntries, o.Enhanced, o.Ranges),
		lookups:  map[string]*lookup{},
		queue:    make(chan struct{}, 1+o.Concurrency/4),
		wire:     make(chan struct{}, o.Concurrency),
		answered: make(chan answeredBatch, 2*o.Concurrency),
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b, nil
}

func (b *bulkRun) stop() {
	b.cancel()
	b.requests.Wait()
	for ; b.open > 0; b.open-- { // what was paid for is kept all the same
		a := <-b.answered
		b.answers.keep(a.answers)
	}
}

// add takes one input and yields what is ready. It tells whether to go on.
func (b *bulkRun) add(card string) bool {
	w := waitingInput{index: b.inputs, input: NewIdentifier(card)}
	b.inputs++
	sent := outgoing(card, b.o.PrefixLength)
	if w.lookup = b.lookups[sent]; w.lookup == nil {
		w.known = b.answers.remembered(sent)
	}
	if w.lookup == nil && w.known == nil {
		w.lookup, w.first = &lookup{sent: sent}, true
		b.lookups[sent] = w.lookup
		b.unpacked++
		if err := checkCard(sent); err != nil {
			w.lookup.refuse(&Error{Operation: "lookup all", Err: err})
		} else {
			b.unsent = append(b.unsent, w.lookup)
		}
	}
	if w.lookup != nil {
		w.lookup.inputs++
	}
	if b.o.Unordered && !w.ready() {
		w.lookup.receivers = append(w.lookup.receivers, w)
		b.scattered++
	} else {
		b.waiting = append(b.waiting, w)
	}
	return b.advance(false)
}

// gather takes in those of the lookups that are resolved by now: their answers can
// rest, or not, and the inputs that wait with them are ready.
func (b *bulkRun) gather(lookups []*lookup) {
	for _, l := range lookups {
		if !l.resolved {
			continue
		}
		if l.known != nil {
			b.unpacked--
		}
		b.waiting = append(b.waiting, l.receivers...)
		b.scattered -= len(l.receivers)
		l.receivers = nil
	}
}

// advance yields what is ready, and sends and receives as long as it can without
// more input, or must to make room for it; in the end, until all is done. It
// waits for nothing while a result is ready.
func (b *bulkRun) advance(all bool) bool {
	for b.drain() {
		must := all || b.isFull() && !b.moves()
		switch {
		case len(b.unsent) >= MaxCards, must && len(b.unsent) > 0:
			if b.takePlace() {
				b.send(must)
			}
		case all && b.held() > 0, b.isFull():
			b.receive(<-b.answered)
		default:
			select {
			case a := <-b.answered:
				b.receive(a)
			default:
				return true
			}
		}
	}
	return false
}

// held counts the inputs that have no result yet.
func (b *bulkRun) held() int { return len(b.waiting) + b.scattered }

// moves tells whether an answer to come makes room.
func (b *bulkRun) moves() bool {
	if b.o.Unordered {
		return b.open > 0
	}
	return b.waiting[0].lookup.asked
}

// isFull bounds what is held: the inputs that wait, and the answers that wait
// with them.
func (b *bulkRun) isFull() bool {
	return b.held() >= maxWaiting || len(b.lookups) >= maxLookups || b.unpacked >= 4*MaxCards*(b.o.Concurrency+1)
}

// finish ends the lookup when there is no more input.
func (b *bulkRun) finish() {
	if b.advance(true) {
		b.report()
	}
}

// drain yields the results that are ready and next in order.
func (b *bulkRun) drain() bool {
	ready := 0
	for ; ready < len(b.waiting) && b.waiting[ready].ready(); ready++ {
		if !b.yieldResult(&b.waiting[ready]) {
			return false
		}
	}
	clear(b.waiting[:ready]) // or the array behind would hold their answers
	b.waiting = b.waiting[ready:]
	if b.fatal == nil && b.ctx.Err() != nil {
		b.fatal = &Error{Operation: "lookup all", Err: transport.Ended(b.ctx)}
	}
	if b.fatal != nil && b.open > 0 {
		// What has arrived already still counts; what has not ends at once.
		b.cancel()
		for b.open > 0 {
			b.receive(<-b.answered)
		}
		return b.drain()
	}
	if b.fatal != nil {
		b.report()
		b.yield(BulkResult{Index: -1}, b.fatal)
		return false
	}
	return true
}

func (b *bulkRun) yieldResult(w *waitingInput) bool {
	r := BulkResult{Index: w.index, Input: w.input, Reused: true}
	var err error
	if l := w.lookup; l == nil {
		r.Result = w.known.result(outgoing(w.input.Reveal(), b.o.PrefixLength))
	} else {
		if l.isWhole() {
			b.whole.Add(-1)
		}
		r.Result, r.Reused, err = l.take(l.sent), !w.first || !l.asked, l.err
		if r.Reused {
			r.Result.forgetCard()
		}
		if l.inputs--; l.inputs == 0 {
			delete(b.lookups, l.sent)
			if l.known == nil {
				b.unpacked--
			}
		}
	}
	b.progress.Done++
	if r.Reused {
		b.progress.Cached++
	}
	if err != nil {
		b.progress.Errors++
	}
	if b.progress.Done%reportEvery == 0 {
		b.report()
	}
	return b.yield(r, err)
}

func (b *bulkRun) report() {
	if b.o.Progress != nil {
		b.progress.Conflicts = b.answers.memory.Conflicts()
		b.o.Progress(b.progress)
	}
}
