package bins

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/limit"
	"github.com/carddata/carddata-go/internal/transport"
)

// LookupAll looks up any number of cards, 50 in a request. It yields one result for each input, in
// input order, and holds at most 32,768 inputs. opts are those of each request.
//
// A repeated identifier is not sent again while its request is in flight, or while its result is in the
// last 2 MiB of responses or in [BulkOptions.Memory]. The result of a card number (12 digits or more) is
// never kept: set [BulkOptions.PrefixLength].
//
// # Errors
//
// The error of one card is [BulkResult.Err]. If it is Retryable, look the card up again later. To keep the
// place of a row without a card, yield "".
//
// If the lookup ends early, the sequence yields an error, once and last. If it is Retryable, the same
// lookup can go on later. Inputs that were taken and have no result have [ErrSuspended]. To go on, also
// after a kill, begin behind the last result that you have stored, and store none from the first
// ErrSuspended on: see the Example LookupAll (Resume).
//
// The lookup ends early
//
//   - after the end of ctx, or if a rate limit lets no request through before its deadline
//   - if nothing has worked for [BulkOptions.GiveUpAfter]
//   - if its first ten requests, or all of fewer, show that the set-up is wrong: an unusable credential,
//     401, 403, 404, 405, 407, 410, 501, 505, a redirect, a wrong host name, certificate or proxy
//   - if the service refuses its first hundred cards, each alone
//
// # Failures
//
// Cards are sent again, whatever WithMaxRetries says, after 401, 429, a 5xx, a timeout, no response, a
// response that is not the documented one, or a failing limiter or token source. A request that fails for
// GiveUpAfter while others have results fails its cards. 403, 404 and 410 fail them at once.
//
// A bad card fails alone. A request that is refused, such as by 400 or 422, is sent again in halves, until
// each card stands alone. So is one that fails twice in another way, such as by 500, while others work. A
// card then fails after eight failures alone. Requests for 50 cards, which [WithRateLimit] counts:
//
//	                          refused   fail by 500
//	one bad card, at most     13        23
//	2 % of all cards          11        19
//	10 % of all cards         40        77
//
// # Stopping
//
// To stop without losing inputs, cancel ctx and go on to the end of the loop. Leaving the loop cancels
// requests in flight. Loop, input and Progress run on one goroutine.
func (c *Client) LookupAll(ctx context.Context, cards iter.Seq[string], o BulkOptions, opts ...CallOption) iter.Seq2[BulkResult, error] {
	return func(yield func(BulkResult, error) bool) {
		b, err := newBulk(ctx, c, cards, o, opts, yield)
		if err != nil {
			yield(BulkResult{}, err)
			return
		}
		defer b.stop()
		b.run(cards)
	}
}

// A bulkRun is one pass of LookupAll. Everything runs on the goroutine that ranges over it,
// except the requests.
//
//	input → add → unchecked → the caller's cache → unsent → a batch → the service
//	                  ↘ known ↘                      results in order ↙
type bulkRun struct {
	ctx      context.Context
	cancel   context.CancelFunc
	client   *Client
	o        BulkOptions
	settings *transport.Settings
	yield    func(BulkResult, error) bool

	memory    memory
	health    health
	pool      *bulk.Pool
	waiting   []waitingInput // in input order
	unchecked []*lookup      // not yet looked up in the caller's cache
	unsent    []*lookup      // not yet in a batch
	batches   []*batch       // not yet sent
	progress  BulkProgress
	fatal     error // ends the lookup
}

// A waitingInput has its result in memory, or a lookup that will bring it.
type waitingInput struct {
	input  string
	known  *entry
	lookup *lookup
	first  bool // this input made the lookup necessary
}

func (w *waitingInput) isReady() bool { return w.known != nil || w.lookup.done }

func newBulk(ctx context.Context, c *Client, cards iter.Seq[string], o BulkOptions, opts []CallOption, yield func(BulkResult, error) bool) (*bulkRun, error) {
	settings, err := c.settings(opts)
	switch {
	case err != nil:
	case ctx == nil:
		err = fault.Invalid("the context is nil")
	case cards == nil:
		err = fault.Invalid("the input is nil")
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		err = fault.Invalid("a concurrency of %d given, 0 to %d allowed", o.Concurrency, maxConcurrency)
	default:
		err = checkPrefix(o.PrefixLength)
	}
	if err != nil {
		return nil, bulkError(err)
	}
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, defaultGiveUpAfter)
	b := &bulkRun{
		client: c, o: o, settings: settings, yield: yield,
		memory: memory{
			store:  newStore("lookup all", o.Memory, o.Cache, o.Enhanced),
			always: o.Memory != nil || o.Cache != nil, lookups: map[string]*lookup{},
		},
		pool: bulk.NewPool(o.Concurrency),
	}
	b.health.window = c.core.NewWindow(ctx)
	b.health.pauses = transport.PauseLog{Client: c.core, Call: transport.Call{Operation: "lookup all", Method: http.MethodPost, Route: lookupRoute}}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b, nil
}

// run processes all input, unless something ends the lookup early.
func (b *bulkRun) run(cards iter.Seq[string]) {
	for card := range cards {
		if b.add(card); !b.advance(false) {
			return
		}
	}
	b.advance(true)
}

// add takes one input.
func (b *bulkRun) add(card string) {
	w := waitingInput{input: card}
	sent := truncatePAN(card, b.o.PrefixLength)
	if w.lookup, w.known = b.memory.find(sent); w.lookup == nil && w.known == nil {
		w.lookup, w.first = b.begin(sent), true
	}
	if w.lookup != nil {
		w.lookup.inputs++
	}
	if len(b.waiting) == cap(b.waiting) { // the front is dropped continuously, so grow in larger steps than append would
		b.waiting = slices.Grow(b.waiting, len(b.waiting)+MaxCards)
	}
	b.waiting = append(b.waiting, w)
}

func (b *bulkRun) begin(sent string) *lookup {
	l := b.memory.begin(sent)
	if err := checkCard(sent); err != nil {
		b.end([]*lookup{l}, bulkError(err))
	} else {
		b.unchecked = append(b.unchecked, l)
	}
	return l
}

// advance does all that needs no more input, and yields the ready results. It reports whether
// to take more input, or that all is done if the input has ended.
func (b *bulkRun) advance(ended bool) bool {
	for {
		b.pool.Receive()
		b.pool.Rethrow()
		b.notice()
		switch full := b.isFull(); {
		case b.isReady():
			if !b.yieldResults() {
				return false
			}
		case b.fatal != nil:
			b.endEarly()
			return false
		case b.isBatch(b.unchecked, ended):
			b.check()
		case len(b.batches) == 0 && b.isBatch(b.unsent, ended):
			b.fill()
		case len(b.batches) > 0 && b.pool.HasRoom():
			first := b.batches[0]
			b.batches = slices.Delete(b.batches, 0, 1)
			b.progress.Distinct += len(first.lookups)
			b.send(first, 0)
		case b.pool.Running == 0 && (full || ended) && len(b.health.held) > 0:
			b.decide()
		case len(b.batches) > 0 || full || ended && len(b.waiting) > 0:
			b.pool.Wait(bulk.At(b.giveUpAt()), b.ctx.Done())
		case !ended:
			return true
		default:
			b.report()
			return true
		}
	}
}

// isReady reports whether a result can be yielded.
func (b *bulkRun) isReady() bool { return len(b.waiting) > 0 && b.waiting[0].isReady() }

// isFull bounds the memory of inputs that wait, and of results that wait with them. A request that is sent
// again must not delay the others by a second or two. With many in flight, the results that wait behind it
// would take too much memory.
func (b *bulkRun) isFull() bool {
	c := b.o.Concurrency
	most := min(maxPending, MaxCards*min(12*c, max(c*5/4, 16_000/c)))
	return len(b.waiting) >= maxHeld || b.memory.pending >= most
}

// isBatch reports whether lookups must leave now. A partial batch leaves if no more input can
// come before it.
func (b *bulkRun) isBatch(lookups []*lookup, ended bool) bool {
	return len(lookups) >= MaxCards || len(lookups) > 0 && (ended || b.isFull() && b.pool.Running == 0)
}

// notice checks whether the lookup must end.
func (b *bulkRun) notice() {
	if b.fatal != nil {
		return
	}
	if b.ctx.Err() != nil {
		var last error // while it failed
		if !b.health.failing.IsZero() {
			last = b.health.failure
		}
		b.fatal = bulkError(fault.EndedBy(b.ctx, last))
	} else if end := b.giveUpAt(); !end.IsZero() && !time.Now().Before(end) {
		b.fatal = bulkError(fault.NewError("the service kept failing, the lookup is suspended", ErrSuspended, b.health.failure))
	}
}

// giveUpAt is when the lookup gives up, unless the service works before; zero: never.
func (b *bulkRun) giveUpAt() time.Time {
	if b.health.failing.IsZero() || b.o.GiveUpAfter < 0 {
		return time.Time{}
	}
	return b.health.failing.Add(b.o.GiveUpAfter)
}

// check looks a batch up in the caller's cache.
func (b *bulkRun) check() {
	lookups := takeBatch(&b.unchecked)
	b.unsent = append(b.unsent, b.memory.fetch(b.ctx, lookups)...)
	b.end(slices.DeleteFunc(lookups, func(l *lookup) bool { return !l.reused }), nil)
}

// fill makes batches of the unsent lookups.
func (b *bulkRun) fill() {
	for _, group := range match.Apart(takeBatch(&b.unsent), (*lookup).identifier) {
		b.batches = append(b.batches, &batch{lookups: group})
	}
}

// takeBatch removes the lookups of a batch.
func takeBatch(from *[]*lookup) []*lookup {
	n := min(MaxCards, len(*from))
	taken := slices.Clone((*from)[:n])
	*from = slices.Delete(*from, 0, n)
	return taken
}

// end ends lookups, with err for all of them unless it is nil. If the service is to blame, an
// expired card in the memory is used.
func (b *bulkRun) end(lookups []*lookup, err error) {
	for _, l := range lookups {
		l.err, l.done = cmp.Or(err, l.err), true
		if isOutage(err) {
			if known := b.memory.findStale(l.sent); known != nil {
				r := known.result()
				r.Stale, l.err = true, nil
				l.reuse(&r)
			}
		}
	}
}

// endEarly yields the results of all inputs taken, and then the reason.
func (b *bulkRun) endEarly() {
	if !limit.NoTurn(b.fatal) { // otherwise let the requests in flight finish
		b.cancel()
	}
	b.pool.Close()
	b.pool.Rethrow()
	suspended := b.fatal
	if !errors.Is(suspended, ErrSuspended) {
		suspended = bulkError(suspendedBy(b.fatal, ErrSuspended.Error()))
	}
	for i := range b.waiting {
		if l := b.waiting[i].lookup; l != nil && !l.done {
			b.end([]*lookup{l}, suspended)
		}
	}
	if b.yieldResults() {
		b.report()
		b.yield(BulkResult{}, b.fatal)
	}
}

// stop ends what is in flight when the loop has ended or was left.
func (b *bulkRun) stop() {
	b.cancel()
	b.fatal, b.o.Progress = cmp.Or(b.fatal, ErrSuspended), nil
	b.pool.Close()
	b.pool.Rethrow()
}

// yieldResults yields the results that are ready, and reports whether to go on.
func (b *bulkRun) yieldResults() bool {
	for b.isReady() {
		w := b.waiting[0]
		b.waiting[0] = waitingInput{} // otherwise the array would keep its result
		b.waiting = b.waiting[1:]
		if !b.yieldResult(w) {
			return false
		}
	}
	return true
}

func (b *bulkRun) yieldResult(w waitingInput) bool {
	r := BulkResult{Index: b.progress.Done, Input: NewIdentifier(w.input), Reused: true}
	if l := w.lookup; l == nil {
		r.Result = w.known.result()
	} else {
		r.Reused, r.Err = !w.first || l.reused, l.err
		if l.result != nil {
			r.Result = *l.result
		}
		if b.memory.leave(l) { // the last input gets the result without a copy
			l.result = nil
		} else {
			r.Result = r.Result.clone()
		}
		if r.Reused {
			r.Result.forgetCard(l.sent)
		}
	}
	b.progress.Done++
	if r.Reused {
		b.progress.Cached++
	}
	if r.Err != nil {
		b.progress.Errors++
	}
	if b.progress.Done%reportEvery == 0 {
		b.report()
	}
	return b.yield(r, nil)
}

func (b *bulkRun) report() {
	state := b.health.window.State()
	b.health.pauses.Log(state)
	b.progress.Stats = statsOf(state)
	b.progress.PausedUntil = b.client.core.Probes("", state.PausedUntil)
	if b.o.Progress != nil {
		b.o.Progress(b.progress)
	}
}
