package bins

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/breaker"
	"github.com/carddata/carddata-go/internal/transport"
)

// A bulkRun is one pass of LookupAll. All but the requests and the calls of the
// caller's cache happens on the goroutine that ranges over it.
//
//	input → add → unchecked → the caller's cache → unsent → a batch → the service
//	                  ↘ known ↘                      results in order ↙
type bulkRun struct {
	ctx      context.Context
	cancel   context.CancelFunc
	client   *Client
	o        BulkOptions
	opts     []Option
	yield    func(BulkResult, error) bool
	store    *store
	progress BulkProgress

	inputs  int
	waiting []waitingInput // until their result is yielded, in its order
	settled bool           // a lookup, since results were last yielded
	ended   bool           // the input
	overdue bool           // what is unsent leaves although it is no full batch

	lookups     map[string]*lookup // by identifier: those that inputs wait for, or whose response is kept
	outstanding int                // lookups that inputs wait for
	window      int                // how many there may be
	kept        []*response        // of lookups, the oldest first
	keptBytes   atomic.Int64       // with those of responses that no event has brought
	repeats     int                // inputs whose identifier was there before

	tasks     sync.WaitGroup
	events    chan func() // what a task that has ended does on the loop's goroutine
	running   int         // tasks whose event was not received
	checking  int         // of them calls of the caller's cache
	inFlight  int         // of them requests
	unchecked []*lookup   // to be looked for in the caller's cache
	unsent    []*lookup   // to be asked for
	batches   []*batch    // to be sent
	failed    []*batch    // by the service's fault, to be sent again

	breaker     breaker.Breaker
	works       bool // the service has sent a result
	successes   int
	lastFailed  *batch
	failedAlone int   // times in a row
	suspended   error // of what was not asked for when it gave up
	fatal       error
}

// A waitingInput has its result in memory, or a lookup that will bring it.
type waitingInput struct {
	index  int
	input  string
	known  *entry
	lookup *lookup
	first  bool // to need this lookup
}

func (w *waitingInput) ready() bool { return w.known != nil || w.lookup.done }

func newBulk(ctx context.Context, c *Client, cards iter.Seq[string], o BulkOptions, opts []Option, yield func(BulkResult, error) bool) (*bulkRun, error) {
	var err error
	switch {
	case c == nil || c.core == nil:
		err = transport.Invalid("the client was not made by NewClient")
	case ctx == nil:
		err = transport.Invalid("the context is nil")
	case cards == nil:
		err = transport.Invalid("the input is nil")
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		err = transport.Invalid("a concurrency of %d given, 0 to %d allowed", o.Concurrency, maxConcurrency)
	default:
		err = cmp.Or(checkPrefix(o.PrefixLength), c.core.CheckOptions(opts))
	}
	if err != nil {
		return nil, bulkError(err)
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	b := &bulkRun{
		client: c, o: o, opts: opts, yield: yield,
		store:   newStore("lookup all", o.Memory, bulkEntries, o.Cache, o.Enhanced, o.Ranges),
		breaker: breaker.Breaker{GiveUpAfter: o.GiveUpAfter, Jitter: func(below time.Duration) time.Duration { return c.core.Jitter(ctx, below) }},
		lookups: map[string]*lookup{},
		events:  make(chan func(), 2*o.Concurrency),
		// A request that is retried is to hold up no other for a second or two. Where many
		// are in flight, the results that wait for it would take too much memory for that.
		window: min(maxPending, MaxCards*min(12*o.Concurrency, max(o.Concurrency*5/4, 16_000/o.Concurrency))),
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b, nil
}

func bulkError(err error) *Error { return &Error{Operation: "lookup all", Err: err} }

// run takes the input to its end, unless something ends the lookup before.
func (b *bulkRun) run(cards iter.Seq[string]) {
	defer b.tasks.Wait()
	defer b.cancel()
	if b.o.ReadAhead {
		if !b.readAhead(cards) {
			return
		}
	} else {
		for card := range cards {
			if b.add(card); !b.advance() {
				return
			}
		}
	}
	if b.ended = true; b.advance() {
		b.report()
	}
}

// readAhead runs the input on a goroutine of its own. It tells whether all of it was
// taken.
func (b *bulkRun) readAhead(cards iter.Seq[string]) bool {
	inputs := make(chan string, MaxCards)
	var panicked any = errPanicked
	go func() {
		defer close(inputs)
		defer func() { panicked = cmp.Or(recover(), panicked) }()
		for card := range cards {
			select {
			case inputs <- card:
				continue
			case <-b.ctx.Done():
			}
			break
		}
		panicked = nil
	}()
	var window <-chan time.Time
	for b.advance() {
		if len(b.unsent)+len(b.unchecked)+len(b.failed) == 0 {
			window, b.overdue = nil, false
		} else if window == nil {
			window = time.After(readAheadWindow)
		}
		select {
		case card, ok := <-inputs:
			if !ok && panicked != nil {
				panic(panicked)
			} else if !ok {
				return true
			}
			b.add(card)
		case event := <-b.events:
			b.receive(event)
		case <-window:
			b.overdue = true
		case <-b.ctx.Done():
		}
	}
	return false
}

// add takes one input.
func (b *bulkRun) add(card string) {
	w := waitingInput{index: b.inputs, input: card}
	b.inputs++
	sent := truncatePAN(card, b.o.PrefixLength)
	w.lookup = b.lookups[sent]
	if w.lookup != nil && w.lookup.inputs == 0 { // what comes a second time may come again
		b.store.unpack(w.lookup.kept)
		b.drop(w.lookup.kept)
		w.lookup = nil
	}
	if w.lookup == nil {
		w.known = b.store.find(sent)
	}
	if w.lookup != nil || w.known != nil {
		b.repeats++
	} else {
		w.lookup, w.first = b.newLookup(sent), true
	}
	if w.lookup != nil {
		w.lookup.inputs++
	}
	if len(b.waiting) == cap(b.waiting) { // its front is given up all the time, so append would copy it often
		b.waiting = slices.Grow(b.waiting, len(b.waiting)+MaxCards)
	}
	b.waiting = append(b.waiting, w)
	if last := len(b.waiting) - 1; b.o.Unordered && w.ready() {
		b.waiting[0], b.waiting[last] = w, b.waiting[0]
	}
}

func (b *bulkRun) newLookup(sent string) *lookup {
	l := &lookup{sent: sent}
	b.lookups[sent] = l
	b.outstanding++
	err := checkCard(sent)
	switch {
	case err != nil:
		b.end([]*lookup{l}, bulkError(err))
	case b.suspended != nil:
		b.end([]*lookup{l}, b.suspended)
	case b.store.remote != nil:
		b.unchecked = append(b.unchecked, l)
	default:
		b.unsent = append(b.unsent, l)
	}
	return l
}

// packs tells whether to pack results into the memory as they come. To pack costs more
// than to read, and in most bulk lookups all identifiers are different. So at first
// responses are kept as they came, and packed when one of their identifiers comes again.
func (b *bulkRun) packs() bool {
	return b.o.Memory != nil || b.o.Cache != nil || b.o.Ranges || b.repeats > b.inputs/16
}

// keep keeps a response as it came, in place of the oldest.
func (b *bulkRun) keep(r *response) {
	if r.body == nil {
		return
	}
	for _, l := range r.lookups {
		if l.err == nil && !mayBeCardNumber(l.sent) {
			l.kept = r
		}
	}
	b.kept = append(b.kept, r)
	for ; b.keptBytes.Load() > maxKeptBytes && len(b.kept) > 0; b.kept = b.kept[1:] {
		b.drop(b.kept[0])
	}
}

// drop ends the keeping of a response.
func (b *bulkRun) drop(r *response) {
	if r.body == nil {
		return
	}
	for _, l := range r.lookups {
		if l.kept != r {
			continue
		}
		if l.kept = nil; l.inputs == 0 {
			delete(b.lookups, l.sent)
		}
	}
	b.keptBytes.Add(-r.size())
	r.release()
}

// advance yields what is ready, and sends and receives as long as it can without
// more input, or must to make room for it; in the end, until all is done. It
// waits for nothing while a result is ready.
func (b *bulkRun) advance() bool {
	for b.drain() {
		due := b.due()
		switch {
		case b.isBatch(b.unchecked) && b.checking < b.o.Concurrency:
			b.check()
		case len(b.batches) == 0 && b.isBatch(b.unsent):
			b.fillBatches()
		case due != nil && b.inFlight < b.breaker.Limit(b.o.Concurrency):
			b.send(due)
		case due != nil || b.isBatch(b.unchecked) || b.isFull() || b.ended && len(b.waiting) > 0:
			b.wait(due != nil)
		default:
			select {
			case event := <-b.events:
				b.receive(event)
			default:
				return true
			}
		}
	}
	return false
}

// isFull bounds what is held: the inputs that wait, and the results that wait with
// them.
func (b *bulkRun) isFull() bool { return len(b.waiting) >= maxHeld || b.outstanding >= b.window }

// isBatch tells whether lookups are to leave. What is no full batch leaves if no more
// input can come before it has left.
func (b *bulkRun) isBatch(lookups []*lookup) bool {
	return len(lookups) >= MaxCards || len(lookups) > 0 && (b.ended || b.overdue || b.isFull() && b.running == 0)
}

// wait waits for an event, for the time to probe a service that fails if there is a
// batch to do it with, or for the end of the context.
func (b *bulkRun) wait(due bool) {
	var probe <-chan time.Time
	if due && b.inFlight == 0 && b.breaker.Open() {
		probe = time.After(b.breaker.Delay())
	}
	select {
	case event := <-b.events:
		b.receive(event)
	case <-probe:
	case <-b.ctx.Done():
	}
}

func (b *bulkRun) receive(event func()) {
	b.running--
	event()
}

// drain yields the results that are ready and next in order.
func (b *bulkRun) drain() bool {
	if b.o.Unordered && b.settled {
		b.settled = false
		ready := 0
		for i := range b.waiting {
			if b.waiting[i].ready() {
				b.waiting[ready], b.waiting[i] = b.waiting[i], b.waiting[ready]
				ready++
			}
		}
	}
	ready := 0
	for ; ready < len(b.waiting) && b.waiting[ready].ready(); ready++ {
		if !b.yieldResult(&b.waiting[ready]) {
			return false
		}
	}
	clear(b.waiting[:ready]) // or the array behind would hold their results
	b.waiting = b.waiting[ready:]
	if b.fatal == nil && b.ctx.Err() != nil {
		b.fatal = bulkError(transport.Ended(b.ctx))
	}
	if b.fatal == nil {
		return true
	}
	if b.running > 0 { // what has arrived already still counts; what has not ends at once, or has its turn
		if !transport.NoTurn(b.fatal) {
			b.cancel()
		}
		for b.running > 0 {
			b.receive(<-b.events)
		}
		return b.drain()
	}
	b.report()
	b.yield(BulkResult{Index: -1}, b.fatal)
	return false
}

func (b *bulkRun) yieldResult(w *waitingInput) bool {
	r := BulkResult{Index: w.index, Input: NewIdentifier(w.input), Reused: true}
	var err error
	if l := w.lookup; l == nil {
		r.Result = w.known.result(truncatePAN(w.input, b.o.PrefixLength))
	} else {
		r.Reused, err = !w.first || l.reused, l.err
		if l.result != nil {
			r.Result = *l.result
		}
		if l.inputs--; l.inputs > 0 { // the last one has the result as it came
			r.Result = r.Result.clone()
		} else {
			b.outstanding--
			if l.result = nil; l.kept == nil {
				delete(b.lookups, l.sent)
			}
		}
		if r.Reused {
			r.Result.forgetCard(l.sent)
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
		b.progress.Conflicts, b.progress.Rate = b.store.memory.Conflicts(), b.client.core.Rate()
		b.o.Progress(b.progress)
	}
}
