package bins

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/limit"
	"github.com/carddata/carddata-go/internal/transport"
)

// A batch is the lookups of one request.
type batch struct {
	lookups []*lookup
	rest    []*lookup // of a probe: the lookups that wait for its result
	isProbe bool      // one card of it is sent
	isPart  bool      // of a batch that failed: it is halved if it fails, too
	unsent  bool      // the last try failed before it was sent

	tries    int       // that failed
	suspect  int       // of them, those that its cards may have caused
	alone    int       // failures of a card that stands alone
	failedAt time.Time // the first failure
	results  int       // requests that had a result before that
}

// A health is what the requests of a bulk lookup have shown of the service.
type health struct {
	window *flow.Window
	pauses transport.PauseLog

	requests int       // that have ended
	setup    int       // of them, those that failed because of the set-up
	results  int       // of them, those with a result
	failing  time.Time // the first failure since the last result; zero: the service works
	failure  error     // the last failure
	held     []failed  // in the order in which they failed
}

// A failed batch is held until others show whether its failure is its own.
type failed struct {
	*batch
	err   error
	blame blame
}

const (
	// If so many first requests show that the set-up is wrong, the lookup ends.
	mostSetup = 10
	// If so many first cards that stand alone are refused, the lookup ends.
	mostRefused = 100
	// A batch is halved after so many failures.
	mostSuspect = 2
	// A card fails after so many failures alone, while others have results. If half of all requests fail at
	// random, one good card in 20,000 fails; after three failures, it would be one in 1,000.
	mostTries = 8
	// After a pause, a card that failed alone leaves so much later than another one.
	behindProbe = 10 * time.Millisecond
)

// send sends a batch as soon as there is a slot for it, before all that wait for one, after a wait. Others have its
// slot meanwhile, unless they could not be sent, either. While the service is down, one card of it is the probe.
func (b *bulkRun) send(next *batch, wait time.Duration) {
	if b.fatal != nil {
		return // its lookups end with all others
	}
	packs := b.memory.packs()
	b.pool.StartFirst(func(slot *bulk.Slot) func() {
		switch { // if ctx has ended, the request says so
		case next.unsent:
			_ = await.Sleep(b.ctx, wait, nil)
		case wait > 0:
			_ = slot.Wait(b.ctx, wait, nil)
		}
		one := next.isProbe
		r, body := b.request(next, one)
		for b.awaitsPause(slot, next, r.err) {
			one = next.isProbe || b.health.isDown()
			r, body = b.request(next, one)
		}
		b.memory.take(r, body, packs)
		if len(r.values) > 0 {
			b.pool.Go(func() { b.memory.share(b.ctx, r.values) }) // nothing waits for the caller's cache
		}
		return func() {
			if one && len(next.lookups) > 1 {
				next.lookups, next.rest = next.lookups[:1:1], slices.Clone(next.lookups[1:])
			}
			b.settle(next, r)
		}
	}, func() {})
}

// request sends a batch, or one card of it.
func (b *bulkRun) request(next *batch, one bool) (r *response, body *bytes.Buffer) {
	lookups := next.lookups
	if one {
		lookups = lookups[:1]
	}
	call := transport.Call{
		Door: b.health.window, Again: next.tries > 0 || next.isPart, Bulk: true, Part: next.isPart, FailedAlone: next.alone > 0,
		KeepBody: func(kept *bytes.Buffer) { body = kept },
	}
	if len(lookups) == 1 {
		call.Of = hashOf(lookups[0].sent)
	}
	r = b.memory.request(b.ctx, b.client, lookups, call, b.settings)
	return r, body
}

// awaitsPause waits until requests may be sent again, if none may be sent now. It reports whether one may be.
func (b *bulkRun) awaitsPause(slot *bulk.Slot, next *batch, err error) bool {
	if pause, ok := errors.AsType[*flow.Pause](err); ok {
		wait := time.Until(pause.Until)
		if next.alone > 0 { // another card is a better probe
			return slot.Wait(b.ctx, wait+behindProbe, pause.Over) == nil
		}
		return await.Sleep(b.ctx, wait, pause.Over) == nil
	}
	if limit.IsPause(err) {
		failed, _ := errors.AsType[*Error](err)
		return await.Sleep(b.ctx, failed.RetryAfter, nil) == nil
	}
	return false
}

// backoff is the wait before a batch is sent again after so many tries. In a pause, the probes have delays
// of their own.
func (b *bulkRun) backoff(tries int, err error) time.Duration {
	failed, _ := errors.AsType[*Error](err)
	asked := min(failed.RetryAfter, transport.MaxRetryAfter)
	if b.health.isDown() && failed.Attempts > 0 {
		return asked
	}
	return b.client.core.Backoff(b.ctx, tries, errors.Is(err, ErrRateLimited), asked)
}

// Blame says who may have caused the failure of a request.
type blame int

const (
	nobody         blame = iota // it has a result
	caller                      // every further request would fail, too
	setup                       // every request would fail, until somebody corrects something
	service                     // the failure says nothing of the cards
	serviceOrCards              // which, only others show
	cards                       // the service refused them
)

func blameFor(err error) blame {
	if err == nil {
		return nobody
	}
	failed, _ := errors.AsType[*Error](err)
	scope := failed.failure().Scope()
	switch {
	case limit.NoTurn(err), errors.Is(err, ErrInvalidArgument):
		return caller
	case scope == fault.OfSetup, scope == fault.OfAccount, failed.StatusCode == http.StatusMethodNotAllowed:
		return setup
	case scope == fault.OfRequest && failed.StatusCode != 0:
		return cards
	case failed.failure().MayBeItsOwn():
		return serviceOrCards
	}
	return service
}

// answers reports whether a failure because of the set-up is an answer to its cards, so that it is right for others:
// a 403, a 404 and the like.
func answers(err error) bool {
	failed, _ := errors.AsType[*Error](err)
	status := failed.StatusCode
	return status/100 == 4 && status != http.StatusUnauthorized && status != http.StatusProxyAuthRequired
}

// settle takes the result of a request.
func (b *bulkRun) settle(sent *batch, r *response) {
	h, p := &b.health, &b.progress
	b.notice() // whatever failed because ctx ended
	sent.unsent = r.attempts == 0
	p.Requests += r.attempts
	p.Unread += r.unread
	p.Retries += max(0, r.attempts-1)
	if sent.tries > 0 || sent.isPart {
		p.Retries += min(1, r.attempts)
	}
	blame := blameFor(r.err)
	h.requests++
	if blame == setup {
		h.setup++
	}
	if blame == nobody {
		h.results++
		b.memory.keep(r)
		b.end(sent.lookups, nil)
	}
	switch {
	case b.fatal != nil: // what has no result ends with all others
	case blame == caller:
		b.fatal = r.err
	case blame == setup && h.setup == h.requests:
		b.hold(failed{sent, r.err, blame})
	default:
		b.conclude(sent, r.err, blame)
		b.release(blame == nobody)
	}
	b.report()
}

// conclude decides what becomes of a batch.
func (b *bulkRun) conclude(sent *batch, err error, blame blame) {
	isAnswer := blame == nobody || blame == cards || blame == setup && answers(err)
	sent.isProbe = false
	if rest := sent.rest; rest != nil { // it was a probe
		switch sent.rest = nil; {
		case !isAnswer:
			sent.lookups = append(rest, sent.lookups...) // the next probe is another card
		case sent.suspect > 0:
			b.halve(&batch{lookups: rest, failedAt: sent.failedAt, results: sent.results})
		default:
			b.send(&batch{lookups: rest, isPart: sent.isPart, tries: sent.tries, failedAt: sent.failedAt, results: sent.results}, 0)
		}
	}
	if isAnswer {
		b.health.failing = time.Time{}
	} else {
		b.fails(sent, err)
	}
	if blame == serviceOrCards {
		sent.suspect++
	}
	isOwn, n := blame == cards || blame == serviceOrCards && b.isItsOwn(sent), len(sent.lookups)
	switch {
	case blame == nobody:
	case blame == setup && isAnswer, blame == cards && n == 1 && b.health.results > 0:
		b.end(sent.lookups, err)
	case isOwn && n > 1:
		b.halve(sent)
	case isOwn:
		b.failsAlone(sent, err, blame)
	case blame == serviceOrCards && n > 1 && (sent.isPart || sent.suspect >= mostSuspect):
		b.probe(sent, err)
	default:
		b.sendAgain(sent, err)
	}
}

// isItsOwn reports whether the failure of a batch is its own: others work, or a part of it does.
func (b *bulkRun) isItsOwn(sent *batch) bool {
	switch h := &b.health; {
	case sent.isPart:
		return len(sent.lookups) == 1 || !h.isDown()
	case sent.suspect < mostSuspect:
		return false
	case len(sent.lookups) == 1: // no other card of it can show more
		return h.results > 0
	default:
		return h.results > sent.results
	}
}

// fails notes the failure of a batch.
func (b *bulkRun) fails(sent *batch, err error) {
	if b.health.failure = err; b.health.failing.IsZero() {
		b.health.failing = time.Now()
	}
	if sent.tries++; sent.failedAt.IsZero() {
		sent.failedAt, sent.results = time.Now(), b.health.results
	}
}

// sendAgain sends a batch again, unless it has failed for too long while others had results.
func (b *bulkRun) sendAgain(sent *batch, err error) {
	if b.o.GiveUpAfter >= 0 && time.Since(sent.failedAt) > b.o.GiveUpAfter && b.health.results > sent.results {
		b.end(sent.lookups, err)
		return
	}
	b.send(sent, b.backoff(sent.tries-1, err))
}

// halve sends a batch again in halves, at once.
func (b *bulkRun) halve(sent *batch) {
	n := len(sent.lookups)
	for _, half := range [][]*lookup{sent.lookups[:n/2], sent.lookups[n/2:]} {
		if len(half) > 0 {
			b.send(&batch{lookups: half, isPart: true, failedAt: sent.failedAt, results: sent.results}, 0)
		}
	}
}

// failsAlone decides what becomes of a card that stands alone.
func (b *bulkRun) failsAlone(sent *batch, err error, blame blame) {
	if sent.alone++; sent.alone == 1 {
		sent.results = b.health.results
	}
	switch {
	case blame == serviceOrCards && sent.alone < mostTries:
		// If there was too much load, the window needs a moment to come down, and a card that is sent again at
		// once fails all its tries before. A longer wait would hold up the results behind it.
		b.send(sent, b.backoff(min(sent.alone-1, 2), err))
	case b.health.results > sent.results: // others worked meanwhile
		b.end(sent.lookups, err)
	default:
		b.hold(failed{sent, err, blame})
	}
}

// probe sends one card of a batch, to find out whether the service works.
func (b *bulkRun) probe(sent *batch, err error) {
	var wait time.Duration
	if sent.suspect > mostSuspect {
		wait = b.backoff(sent.tries-1, err)
	}
	sent.isProbe = true
	b.send(sent, wait)
}

// hold holds a batch until others show whether its failure is its own.
func (b *bulkRun) hold(f failed) {
	h := &b.health
	h.held = append(h.held, f)
	n := 0
	for _, other := range h.held {
		if other.blame == f.blame {
			n++
		}
	}
	if f.blame == setup && n >= mostSetup || f.blame == cards && n >= mostRefused {
		b.fatal = f.err
	}
}

func (h *health) isDown() bool { return h.window.State().IsDown() }

// release decides on what is held, after a request that failed for another reason than the set-up, or had a
// result.
func (b *bulkRun) release(works bool) {
	held := b.health.held
	b.health.held = nil
	for _, f := range held {
		switch {
		case f.blame != setup && !works:
			b.health.held = append(b.health.held, f)
		case f.blame == cards:
			b.end(f.lookups, f.err)
		default:
			f.alone = 0
			f.tries++
			b.send(f.batch, b.backoff(0, f.err))
		}
	}
}

// decide decides on what is held if nothing else can show more. So few cards are at fault themselves.
func (b *bulkRun) decide() {
	h := &b.health
	switch f := h.held[0]; {
	case f.blame == setup:
		b.fatal = f.err
	case len(h.held) < mostRefused:
		for _, f := range h.held {
			b.end(f.lookups, f.err)
		}
		h.held = nil
	default:
		h.held = h.held[1:]
		f.alone = 0
		b.send(f.batch, b.backoff(0, f.err))
	}
}
