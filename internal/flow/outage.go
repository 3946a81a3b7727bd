package flow

import (
	"cmp"
	"time"
)

const (
	many        = 30 // failures in a row are an outage
	few         = 5  // are one over fewTime, for callers who come seldom
	fewTime     = time.Minute
	firstDelay  = 500 * time.Millisecond // before a probe, on average three quarters of it
	mostDelay   = 30 * time.Second
	soon        = 10 * time.Second // after an outage, the next one says that too many requests left
	patience    = time.Second      // a request that takes less is not overdue
	overdue     = 4                // times the mean time of a response
	overdueCold = 10 * time.Second // while there was no response
)

// A breaker is the circuit breaker: it opens when nothing works. That takes failures of many different requests
// without a success between them. A request without a response for far longer than usual counts as one.
// While it is open, one probe at a time leaves, after delays that double. A success closes it.
type breaker struct {
	failed map[uint64]struct{} // since the last success, by Request.Of; bounded by many
	since  time.Time           // the first of them
	late   bool                // the last of them had no response
	worked time.Time           // the last success
	flying []*flight           // in the order in which they left
	why    string              // the last failure

	open    bool
	over    chan struct{} // closed when it closes
	probe   *flight       // that left last, if it has not ended
	probeAt time.Time
	delay   time.Duration
	closed  time.Time // when the last outage ended
}

// A Pause is the error of a request that found the service down.
type Pause struct {
	Until time.Time       // when the next probe is due
	Over  <-chan struct{} // closed when the service works again
	Why   string          // the condition of the last failure
}

func (*Pause) Error() string { return "the service keeps failing, the next probe is awaited" }

// paused returns a Pause while the service is down, unless a probe is due.
func (w *Window) paused(now time.Time) *Pause {
	b := &w.breaker
	if b.judge(w, now); !b.open {
		return nil
	}
	if b.probe == nil && !now.Before(b.probeAt) {
		return nil
	}
	until := b.probeAt
	if soonest := now.Add(firstDelay); b.probe != nil && until.Before(soonest) {
		until = soonest // nobody knows when a probe without a response ends
	}
	return &Pause{Until: until, Over: b.over, Why: b.why}
}

// overdue is how long the response to a request may take before it counts as one that does not come.
func (w *Window) overdue() time.Duration {
	if w.rtt == 0 {
		return overdueCold
	}
	return max(patience, overdue*w.rtt)
}

// judge opens the breaker if nothing works.
func (b *breaker) judge(w *Window, now time.Time) {
	if b.open {
		return
	}
	failed, since, late := len(b.failed), b.since, b.late
	for len(b.flying) > 0 && b.flying[0].ended {
		b.flying = b.flying[1:]
	}
	for _, f := range b.flying {
		if failed >= many || now.Sub(f.left) < w.overdue() {
			break
		}
		if f.ended || !f.left.After(b.worked) {
			continue
		}
		if failed++; since.IsZero() || f.left.Before(since) {
			since = f.left
		}
		late = true
	}
	long := now.Sub(since)
	isDown := failed >= many || failed >= few && long >= fewTime
	if !isDown || late && long < w.overdue() {
		return
	}
	b.open, b.since, b.delay, b.over = true, since, firstDelay, make(chan struct{})
	b.schedule(w, now)
	if now.Sub(b.closed) < soon {
		w.level.halve(w, now)
	}
	w.line.wakeAll()
}

func (b *breaker) schedule(w *Window, now time.Time) {
	b.probeAt = now.Add(b.delay/2 + w.jitter(b.delay/2))
	b.delay = min(2*b.delay, mostDelay)
}

func (b *breaker) leaves(w *Window, f *flight) {
	b.flying = append(b.flying, f)
	if b.open {
		b.probe = f
		b.schedule(w, f.left)
	}
}

// fails notes a failure.
func (b *breaker) fails(w *Window, f *flight, why string, now time.Time, late bool) {
	b.why = why
	b.ends(f)
	if b.open {
		return
	}
	if len(b.failed) == 0 {
		b.failed = map[uint64]struct{}{}
		if b.since = now; late {
			b.since = f.left
		}
	}
	b.failed[cmp.Or(f.of, uint64(f.number))] = struct{}{}
	b.late = late
	b.judge(w, now)
}

// succeeds notes a success.
func (b *breaker) succeeds(w *Window, now time.Time) {
	clear(b.failed)
	b.since, b.late, b.worked = time.Time{}, false, now
	if b.open {
		b.open, b.probe, b.closed = false, nil, now
		close(b.over)
		w.start, w.level.compared.running = start{}, false
		w.level.cut, w.level.grown, w.level.set = w.last, now, now
		w.line.wakeAll()
	}
}

// saysNothing notes the end of a request that neither begins nor ends an outage. As a probe it makes room
// for the next one.
func (b *breaker) saysNothing(f *flight, now time.Time) {
	if b.open && f == b.probe {
		b.probeAt, b.delay = now, max(b.delay/2, firstDelay)
	}
	b.ends(f)
}

func (b *breaker) ends(f *flight) {
	if f == b.probe {
		b.probe = nil
	}
}
