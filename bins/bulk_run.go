package bins

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/limit"
	flow "github.com/carddata/carddata-go/internal/oldflow"
	"github.com/carddata/carddata-go/internal/transport"
)

// LookupAll looks up any number of cards, 50 in a request. It yields one result for each input, in
// input order unless [BulkOptions.Unordered] is set, and holds at most 32,768 inputs. opts are those
// of each request. [LookupResponse] says how a card gets its item. Trim the cells of a file, and skip
// its header: if the service refuses a request, all its cards fail.
//
// A repeated identifier is not sent again while its request is in flight, or while its result is
// in the last 2 MiB of responses or in [BulkOptions.Memory]. But the result of a card number (12
// digits or more) is never kept: set [BulkOptions.PrefixLength], which also keeps card numbers off
// the network.
//
// # Errors
//
// The error of one card is in its [BulkResult.Err]. Only [ErrInvalidArgument] is final: yield "" for a
// row without a card, to keep its place. Any other error is that of a request, and perhaps of one
// card in it: look each of its cards up alone, and later if the error is Retryable.
//
// If the lookup ends early, the sequence yields an error, once and last: return it. If it is
// Retryable, the same lookup can go on later. Otherwise look for the cause first. All inputs that were
// taken have been yielded by then. Those without a result have [ErrSuspended], and the rest of the
// input is not taken. To go on, also after a kill, begin behind the last result that you have stored,
// and store none from the first ErrSuspended on: see the Example of LookupAll (Resume). With
// Unordered, store each result by its Index instead. Without such an error there is a result or an
// error for each input.
//
// The lookup ends early where every further request would fail: after the end of ctx, an unusable
// option or credential, 401, 403, 404, 407, 410, 501, 505, a redirect, a wrong host name,
// certificate, port or proxy, a rate limit or a Retry-After beyond the deadline, and GiveUpAfter. It
// also ends if, before any request has had a result, the token source fails, or at least eight
// requests are refused by 400 or the like, or get a response that is not the documented one, such as
// an HTML page. What was sent before the first result and refused is sent once more. A request that is
// sent later and refused fails its own cards.
//
// # When the service fails
//
// After 429, a 5xx status, a timeout, no response, a response that is not the documented one, or a
// failing limiter or token source, the cards are sent again, however often: WithMaxRetries does not
// count here. If a batch keeps failing while others succeed, its cards fail, after 429 and 503 only
// after GiveUpAfter. To find that out, the lookup may send a card again that has its result.
//
// The lookup begins with Concurrency requests in flight, ten at most, and adapts to what the service
// accepts, and to how long it takes. If you know the service's rate limit, set
// [WithRateLimit]: without it, as little as seven tenths of a limit may be used. While the service is
// down, one request at a time is sent as a probe: after about a second, and then after delays that
// about double, up to two minutes. After repeated outages, it can take 18 minutes until the
// lookup is at full speed again, or 32 if the service goes on failing requests at random.
//
// # Stopping
//
// Leaving the loop cancels requests in flight. Inputs beyond the last result may have been taken by
// then: to lose none, cancel ctx and go on to the end of the loop. Loop, input and Progress run on one
// goroutine, and the lookup does not end before they return. With [BulkOptions.ReadAhead] the input has
// a goroutine of its own.
func (c *Client) LookupAll(ctx context.Context, cards iter.Seq[string], o BulkOptions, opts ...CallOption) iter.Seq2[BulkResult, error] {
	return func(yield func(BulkResult, error) bool) {
		b, err := newBulk(ctx, c, cards, o, opts, yield)
		if err != nil {
			yield(BulkResult{}, err)
			return
		}
		b.run(cards)
	}
}

// A bulkRun is one pass of LookupAll. Everything runs on the goroutine that ranges over it,
// except the requests and the calls of the caller's cache.
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
	progress BulkProgress

	order  inputOrder
	memory memory
	health health
	most   int // limit of the lookups that inputs wait for

	loop    *bulk.Loop[string, string]
	taken   int       // inputs taken so far
	hurry   time.Time // when to send the unsent lookups in a partial batch; zero: not at a time
	overdue bool      // send them now

	unchecked []*lookup // not yet looked up in the caller's cache
	unsent    []*lookup // not yet in a batch
	batches   []*batch  // not yet sent
	failed    []*batch  // to be sent again
	refused   []*batch  // before any request had a result

	checking int // running calls of the caller's cache
	inFlight int // running requests

	fatal error // ends the lookup
}

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
	jitter := func(below time.Duration) time.Duration { return c.core.Jitter(ctx, below) }
	b := &bulkRun{
		client: c, o: o, settings: settings, yield: yield,
		order: inputOrder{unordered: o.Unordered},
		memory: memory{
			store:  newStore("lookup all", o.Memory, o.Cache, o.Enhanced),
			always: o.Memory != nil || o.Cache != nil, lookups: map[string]*lookup{},
		},
		health: health{window: flow.New(true, jitter), jitter: jitter, giveUpAfter: o.GiveUpAfter},
		// A retried batch must not delay the others by a second or two. With many in flight,
		// the results that wait behind it would take too much memory.
		most: min(maxPending, MaxCards*min(12*o.Concurrency, max(o.Concurrency*5/4, 16_000/o.Concurrency))),
	}
	b.health.pauses = transport.PauseLog{Client: c.core, Call: transport.Call{Operation: "lookup all", Method: http.MethodPost, Route: lookupRoute}}
	b.loop = bulk.NewLoop(func(card string) string { return card }, b.add, 2*o.Concurrency)
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b, nil
}

// run processes all input, unless something ends the lookup early.
func (b *bulkRun) run(cards iter.Seq[string]) {
	defer b.loop.Tasks.Wait()
	defer b.cancel()
	b.loop.Run(b.ctx, cards, b.o.ReadAhead, b.advance)
}

// add takes one input.
func (b *bulkRun) add(card string) {
	w := waitingInput{index: b.taken, input: card}
	b.taken++
	sent := truncatePAN(card, b.o.PrefixLength)
	if w.lookup, w.known = b.memory.find(sent); w.lookup == nil && w.known == nil {
		w.lookup, w.first = b.begin(sent), true
	}
	if w.lookup != nil {
		w.lookup.inputs++
	}
	b.order.add(w)
}

func (b *bulkRun) begin(sent string) *lookup {
	l := b.memory.begin(sent)
	if err := checkCard(sent); err != nil {
		b.end([]*lookup{l}, bulkError(err))
	} else if b.memory.remote != nil {
		b.unchecked = append(b.unchecked, l)
	} else {
		b.unsent = append(b.unsent, l)
	}
	return l
}

// A step is the next action of the loop.
type step int

const (
	stepYield   step = iota // yield the results that are ready
	stepEnd                 // end the lookup early
	stepCheck               // check a batch in the caller's cache
	stepFill                // fill batches
	stepSend                // send the next batch
	stepReceive             // receive events
	stepRefuse              // end the lookups that were refused
	stepWait                // wait for a result or a time
	stepMore                // take one more input
	stepDone                // all results were yielded
)

// next only decides on the next step. A ready result comes first, and no input is taken while
// there is something to send.
func (b *bulkRun) next() step {
	switch due := b.due(); {
	case b.order.isReady():
		return stepYield
	case b.fatal != nil:
		return stepEnd
	case b.isBatch(b.unchecked) && b.checking < b.o.Concurrency:
		return stepCheck
	case len(b.batches) == 0 && b.isBatch(b.unsent):
		return stepFill
	case due != noTurn && b.hasPlace():
		return stepSend
	case b.loop.HasEvents():
		return stepReceive
	case len(b.refused) > 0 && b.loop.Running == 0 && due == noTurn && (b.loop.Ended || b.isFull() || b.loop.IsAhead()):
		return stepRefuse
	case due != noTurn || b.isBatch(b.unchecked) || b.isFull() || b.loop.Ended && len(b.order.waiting) > 0:
		return stepWait
	case !b.loop.Ended:
		return stepMore
	}
	return stepDone
}

// hasPlace reports whether one more request may be in flight.
func (b *bulkRun) hasPlace() bool {
	return b.inFlight < b.o.Concurrency && time.Until(b.client.core.PausedUntil(b.ctx)) <= 0 && b.health.window.IsFree()
}

// isFull bounds the memory of inputs that wait, and of results that wait with them.
func (b *bulkRun) isFull() bool {
	return len(b.order.waiting) >= maxHeld || b.memory.pending >= b.most
}

// isBatch reports whether lookups must leave now. A partial batch leaves if no more input can
// come before it.
func (b *bulkRun) isBatch(lookups []*lookup) bool {
	return len(lookups) >= MaxCards || len(lookups) > 0 && (b.loop.Ended || b.overdue || b.isFull() && b.loop.Running == 0)
}

// advance does all that needs no more input, and yields the ready results. It reports whether
// to take more input. With ReadAhead it takes the input itself.
func (b *bulkRun) advance() bool {
	for {
		b.loop.Rethrow()
		b.notice()
		switch b.next() {
		case stepYield:
			if !b.yieldResults() {
				return false
			}
		case stepEnd:
			b.stop()
			return false
		case stepCheck:
			b.check()
		case stepFill:
			b.fill()
		case stepSend:
			b.send(b.due())
		case stepReceive:
			b.loop.Receive()
		case stepRefuse:
			b.endRefused()
		case stepWait:
			b.wait(false)
		case stepMore:
			if !b.loop.IsAhead() {
				return true
			}
			b.wait(true)
		case stepDone:
			b.report()
			return true
		}
	}
}

// notice checks whether the lookup must end, and whether a pause is over.
func (b *bulkRun) notice() {
	if b.fatal != nil {
		return
	}
	if b.ctx.Err() != nil {
		b.fatal = bulkError(fault.Ended(b.ctx))
	} else if end := b.giveUpAt(); !end.IsZero() && !time.Now().Before(end) {
		b.fatal = b.health.suspended()
	}
}

// giveUpAt is when the lookup gives up, unless the service answers before; zero: never. It waits
// for the requests in flight.
func (b *bulkRun) giveUpAt() time.Time {
	if b.inFlight > 0 {
		return time.Time{}
	}
	return bulk.GiveUpAt(b.health.window.State(), b.o.GiveUpAfter, time.Time{})
}

// wait waits for an event, for the time to send a batch or to give up, for the next input if
// the loop may take one, or for the end of the context.
func (b *bulkRun) wait(takes bool) {
	var due time.Time
	if b.inFlight < b.o.Concurrency && b.due() != noTurn {
		due = b.health.window.Due(b.client.core.PausedUntil(b.ctx))
	}
	if len(b.unsent)+len(b.unchecked)+len(b.failed) == 0 || !b.o.ReadAhead {
		b.hurry, b.overdue = time.Time{}, false
	} else if b.hurry.IsZero() && !b.overdue {
		b.hurry = time.Now().Add(readAheadWindow)
	}
	b.loop.Wait(takes, bulk.At(due, b.hurry, b.giveUpAt()), nil, b.ctx.Done())
	if !b.hurry.IsZero() && !time.Now().Before(b.hurry) {
		b.hurry, b.overdue = time.Time{}, true
	}
}

// stop ends the lookup early. It yields the results of all inputs taken, and then the reason.
func (b *bulkRun) stop() {
	if !limit.NoTurn(b.fatal) { // otherwise let the requests in flight finish
		b.cancel()
	}
	for b.loop.Running > 0 {
		b.loop.Receive()
	}
	b.loop.Rethrow()
	suspended := b.fatal
	if !errors.Is(suspended, ErrSuspended) {
		suspended = bulkError(suspendedBy(b.fatal, ErrSuspended.Error()))
	}
	for i := range b.order.waiting {
		if l := b.order.waiting[i].lookup; l != nil && !l.done {
			b.end([]*lookup{l}, suspended)
		}
	}
	if !b.yieldResults() {
		return
	}
	b.report()
	b.yield(BulkResult{}, b.fatal)
}

func (b *bulkRun) yieldResults() bool {
	for b.order.isReady() {
		if !b.yieldResult(b.order.next()) {
			return false
		}
	}
	return true
}

func (b *bulkRun) yieldResult(w waitingInput) bool {
	r := BulkResult{Index: w.index, Input: NewIdentifier(w.input), Reused: true}
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
	b.health.pauses.Log(state.Paused, state.Next, state.Why)
	p := &b.progress
	p.Level, p.Reason, p.Paused, p.PausedUntil = min(state.Level, float64(b.o.Concurrency)), state.Why, state.Paused, b.client.core.Probes("", state.Next)
	if b.o.Progress != nil {
		b.o.Progress(*p)
	}
}
