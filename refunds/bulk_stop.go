package refunds

import (
	"cmp"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
)

// BulkOptions.HoldFor ends a record that waits too long. BulkOptions.GiveUpAfter, the end of
// the context, a limit without time left, and a panic end the submission.

// hold notes when a waiting record will have been held for HoldFor.
func (b *bulkRun) hold(r *record) {
	if b.o.HoldFor < 0 {
		return
	}
	if over := r.taken.Add(b.o.HoldFor); b.expires.IsZero() || over.Before(b.expires) {
		b.expires = over
	}
}

func (b *bulkRun) isOverdue(r *record) bool {
	return b.o.HoldFor >= 0 && time.Since(r.taken) >= b.o.HoldFor
}

// expire ends the records that were held too long.
func (b *bulkRun) expire() {
	if b.expires.IsZero() || time.Now().Before(b.expires) {
		return
	}
	b.expires = time.Time{}
	sift := func(waiting []*record, over func(*record)) (kept []*record) {
		for _, r := range waiting {
			if b.isOverdue(r) {
				b.complete(r, b.heldTooLong(r))
				over(r)
			} else {
				b.hold(r)
				kept = append(kept, r)
			}
		}
		return kept
	}
	for key, behind := range b.blocked {
		b.blocked[key] = sift(behind, func(*record) {})
	}
	ready := b.ready
	b.ready = nil
	kept := sift(ready, b.unblock)
	b.ready = append(kept, b.ready...)
}

var errHeldTooLong = fault.NewError("the record could not be sent within HoldFor", ErrSuspended)

// heldTooLong is the error of a record that was held for HoldFor.
func (b *bulkRun) heldTooLong(r *record) error {
	failed := r.failure(fault.NewError(errHeldTooLong.Error(), errHeldTooLong, cmp.Or(r.cause, b.failure)))
	if state := b.client.health.window.State(); state.Paused {
		failed.RetryAfter = max(0, time.Until(b.client.core.Probes(state.Next)))
	}
	return failed
}

// giveUpTime is when to give up, or zero if the service works, or may do so.
func (b *bulkRun) giveUpTime() time.Time {
	return bulk.GiveUpAt(b.client.health.window.State(), b.o.GiveUpAfter, b.began)
}

// giveUp ends the submission when its time has come, or at once if the setup has been refused
// from the start. That takes a refusal of its own, because the setup may have been corrected
// since another call.
func (b *bulkRun) giveUp() {
	switch end := b.giveUpTime(); {
	case end.IsZero():
	case b.failure != nil && b.loop.Running == 0 && !b.client.health.isHopeful() && !b.seeks():
		if i := slices.IndexFunc(b.ready, func(r *record) bool { return b.client.health.endPause(r.accountID) }); i >= 0 {
			b.ready[0], b.ready[i] = b.ready[i], b.ready[0] // its account may work: it was held back before it was sent
			return
		}
		b.halt(fault.NewError("nothing was accepted, and waiting does not help", b.failure))
	case !time.Now().Before(end):
		b.halt(fault.NewError("the service kept failing, submission is suspended", ErrSuspended, b.failure))
	}
}

// halt stops taking and sending. The first reason counts: it is the error of every unsent
// record.
func (b *bulkRun) halt(err error) {
	if b.stopErr != nil {
		return
	}
	b.stopErr = err
	unsent := b.ready
	for _, behind := range b.blocked {
		unsent = append(unsent, behind...)
	}
	b.ready, b.expires = nil, time.Time{}
	clear(b.blocked)
	for _, r := range unsent {
		b.complete(r, r.failure(err))
	}
}

// stop waits for the requests in flight, up to the grace period, and gives Abandoned the
// results that the loop did not take.
func (b *bulkRun) stop() {
	b.cancel()
	b.halt(fault.Ended(b.ctx))
	for b.loop.Running > 0 {
		b.loop.Receive()
	}
	b.awaitInput()
	b.cancelRequests()
	b.loop.Tasks.Wait()
	b.abandon()
	b.loop.Rethrow()
}

// awaitInput waits for an input that runs ahead, up to the grace period. It must end when the
// caller's context ends. If the context has not ended, it may still be waiting for its next
// record, so do not wait for it.
func (b *bulkRun) awaitInput() {
	if b.caller.Err() != nil {
		b.loop.AwaitInput(b.requestCtx.Done())
	}
}

// abandon gives Abandoned the remaining results, even if a function that it calls panics.
func (b *bulkRun) abandon() {
	defer func() {
		if len(b.results) > 0 {
			b.o.Progress = nil // it may be the one that panicked
			b.abandon()
		}
	}()
	for len(b.results) > 0 {
		b.deliverTo(func(s Submission) bool {
			if b.o.Abandoned != nil {
				b.o.Abandoned(s)
			}
			return true
		})
	}
}

// ended is the error that ends the results early.
func ended(err error) (Submission, error) {
	return Submission{}, &Error{Operation: submitAll, Err: err}
}
