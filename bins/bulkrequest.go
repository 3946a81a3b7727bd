package bins

import (
	"cmp"
	"context"
	"slices"
)

// send makes a request of what is unsent and did not become known meanwhile. A
// request that is not full is sent only if it must be.
func (b *bulkRun) send(must bool) {
	count := min(MaxCards, len(b.unsent))
	batch := b.answers.resolve(b.ctx, b.unsent[:count])
	b.gather(b.unsent[:count])
	b.unsent = append(batch, b.unsent[count:]...)
	if len(batch) == 0 || len(batch) < MaxCards && !must {
		<-b.queue
		return
	}
	batch = slices.Clone(batch)
	b.unsent = slices.Delete(b.unsent, 0, len(batch))
	for _, l := range batch {
		l.asked = true
	}
	b.open++
	b.progress.Distinct += len(batch)
	b.requests.Go(func() {
		// The place is free as soon as the answer is here, and the next request in the
		// queue takes it while this one is decoded. If this one has to be repeated it
		// needs a place again.
		placed := false
		leave := func() {
			if placed {
				placed = false
				<-b.wire
			}
		}
		enter := func() {
			select {
			case b.wire <- struct{}{}:
				placed = true
			case <-b.ctx.Done():
			}
		}
		enter()
		<-b.queue
		defer leave()
		how := lookupHow{patient: true, arrived: leave, useless: enter}
		var got delivery
		defer func() {
			if got.answers == nil && got.err == nil {
				got.broke(recover())
			}
			b.answered <- answeredBatch{batch, got}
			// The loop may end before: what was paid for is kept all the same.
			b.answers.share(context.WithoutCancel(b.ctx), got.values)
		}()
		got = b.client.ask(b.ctx, b.answers, batch, b.o.Enhanced, how)
		b.spare(got.answers)
	})
}

// spare leaves answers whole, which need not be made anew then, while there are
// few of them, and lays them to rest otherwise.
func (b *bulkRun) spare(answers []answer) {
	for i := range answers {
		if a := &answers[i]; a.isWhole() && b.whole.Add(1) > maxWhole {
			b.whole.Add(-1)
			a.rest()
		}
	}
}

// takePlace waits for a place in the queue or for an answer, whichever comes
// first, and tells whether there is a place.
func (b *bulkRun) takePlace() bool {
	queue := b.queue
	if b.open == cap(b.answered) {
		queue = nil
	}
	select {
	case queue <- struct{}{}:
		return true
	case a := <-b.answered:
		b.receive(a)
		return false
	}
}

// receive resolves the lookups of a request.
func (b *bulkRun) receive(a answeredBatch) {
	b.open--
	if a.panicked != nil {
		panic(a.panicked) // on the loop's goroutine, where the caller can recover
	}
	b.answers.keep(a.answers) // here, so that the loop hardly ever waits for a lock
	b.progress.Requests += a.attempts
	b.progress.Retries += max(0, a.attempts-1)
	if a.err != nil && (b.fatal != nil || failsAll(b.ctx, a.err)) {
		b.fatal = cmp.Or(b.fatal, a.err)
		return
	}
	a.give(a.lookups)
	b.gather(a.lookups)
	b.report()
}
