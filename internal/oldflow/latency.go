package flow

import (
	"math"
	"slices"
	"time"
)

const (
	leastSample  = 9                     // requests
	inOrder      = 7                     // requests that come back as from a queue
	inSamples    = 8                     // one request in so many in flight is in a sample
	sampleWeight = 1.0 / 4               // of a sample in what is usual, and in a best time that was none
	bestWeight   = 1.0 / 64              // of a sample in what is best, at most
	bestRises    = 30 * time.Second      // at least, to what is usual: a queue may grow slowly
	queued       = math.Ln2              // times the best, as a logarithm: responses that take longer wait for each other
	noQueue      = 10 * time.Millisecond // more than the best may be the machine's noise
	doubtful     = math.Ln2 / 2          // more than that after one sample
	manyMore     = 3                     // times as many in flight, which take far longer if they wait for each other
	drained      = 0.9                   // of what the service works on at once
	placesGrowth = 1.0 / 48              // of the places with each sample
	instantly    = 20                    // a wait of this part of the usual time is none
	safely       = 1.5                   // times the time of responses that wait for each other
)

// A latency says how long responses take, and for how many requests in flight they begin to
// wait for each other at the service. It looks at the medians of samples: requests that left
// one after the other. So neither a response that was lucky or hangs, nor a burst that ends with
// its slowest responses, says anything. Times are logarithms of seconds.
type latency struct {
	samples []sample      // that have not ended
	count   int           // samples that have ended
	usual   float64       // median
	spread  float64       // mean distance from it
	best    float64       // median of requests that did not wait for each other
	fewest  int           // requests in flight when it was measured first
	flowed  time.Time     // the last sample that did not wait
	longest time.Duration // response: all that is known before a sample has ended

	late   bool      // a request has ended at its caller's deadline since the last success
	worked time.Time // when a request succeeded last
	flying time.Time // since when requests are in flight

	places   float64   // requests in flight that do not wait for each other; 0: no limit is known
	proven   float64   // so many did not
	lowered  time.Time // the places, to the lowest
	lowest   float64
	returns  bool      // since then, to what is proven
	slow     int       // samples in a row that did
	measured time.Time // samples from before say nothing of these places
	base     int       // samples that measure the best time now
	first    struct {  // sample that was slow, until one is not
		inFlight int
		with     int // in flight when it began; 0: it was not measured
		median   float64
		drained  time.Time // when its queue is gone
	}
	last struct { // sample that was slow
		inFlight float64 // on average
		median   float64
	}
	lone struct { // requests, each from its start to its end
		request int     // that left last
		quick   int     // responses in a row that took less than half of what is usual
		slow    int     // responses in a row that took as if they had waited
		times   float64 // of these, added
	}
}

// A sample is requests that left one after the other.
type sample struct {
	first, size    int // requests
	left           time.Time
	inFlight, most int       // with the first one, and at most
	times          []float64 // of responses
	rising         int       // of them, in the order of the requests, and none shorter than the one before
	slow           int       // of them
	answered       int       // requests
	ended          int
	untimed        int // that ended, and say nothing of the time
}

// isMeasured reports whether the median is that of responses.
func (s *sample) isMeasured() bool { return s.answered > len(s.times)/2 }

// median is that of the whole sample: those that have not ended take longer.
func (s *sample) median() float64 {
	i := min((s.size-s.untimed)/2, len(s.times)-1)
	if s.isMeasured() {
		i = min(i, s.answered-1)
	}
	return s.times[i]
}

// isQueue reports whether requests came back one by one, each after a longer time than the one before.
// By chance, seven do so in one of 5,000 samples.
func (s *sample) isQueue() bool {
	return s.rising >= inOrder && s.isMeasured() && s.times[s.rising-1] > s.times[0]+queued
}

func since(log float64) time.Duration { return time.Duration(math.Exp(log) * float64(time.Second)) }

// limit is how long a response may take before it has waited for others, as a logarithm.
func (l *latency) limit() float64 {
	limit := l.best + max(queued, 2*l.spread) + doubtful/float64(max(1, l.count))
	return max(limit, math.Log(math.Exp(l.best)+noQueue.Seconds()))
}

// forget forgets the limit, but not how long responses take.
func (l *latency) forget() { l.places, l.returns, l.slow, l.samples = 0, false, 0, nil }

// endsAlone notes a response to a request that was alone: samples of such requests take long. One may
// be quick by chance, and some may be slow.
func (l *latency) endsAlone(took time.Duration) {
	lone, log := &l.lone, math.Log(took.Seconds())
	isQuick := l.count > 0 && log < l.usual-queued
	if !isQuick {
		lone.quick = 0
	} else if lone.quick++; lone.quick > 1 {
		l.usual = (l.usual + log) / 2
	}
	if isSlow := l.first.inFlight > 0 && log > l.limit() && time.Since(l.first.drained) > took; !isSlow {
		lone.slow, lone.times = 0, 0
		return
	}
	lone.times += log
	if lone.slow++; lone.slow == few {
		l.hasSlowed(lone.times / few)
	}
}

// leaves notes that a request leaves.
func (l *latency) leaves(request, inFlight int) {
	now := time.Now()
	if inFlight == 1 {
		l.lone.request = request
	}
	size := max(leastSample, inFlight/inSamples)
	if n := len(l.samples); n > 0 {
		last := &l.samples[n-1]
		if request < last.first+last.size {
			last.most = max(last.most, inFlight)
			return
		}
		if l.count == 0 {
			return
		}
	}
	l.samples = append(l.samples, sample{first: request, size: size, left: now, inFlight: inFlight, most: inFlight})
}

// A timing says what the end of a request tells of the time that responses take.
type timing int

const (
	untimed timing = iota
	timed
	atLeast // there was no response until then
	hung    // it took longer than any response
)

// ended notes the end of a request.
func (l *latency) ended(request int, took time.Duration, t timing) (s sample, complete bool) {
	i := slices.IndexFunc(l.samples, func(s sample) bool { return s.first <= request && request < s.first+s.size })
	if i < 0 {
		return s, false
	}
	open := &l.samples[i]
	open.ended++
	log := math.Log(max(took, time.Microsecond).Seconds())
	switch t {
	case timed:
		open.answered++
		if l.returns && log <= l.limit() && time.Since(l.lowered) >= took {
			l.places = max(l.places, min(l.places+1, drained*l.proven))
		}
	case atLeast:
		log += math.Ln2
	case untimed:
		open.untimed++
	}
	if t == timed || t == atLeast && (l.count == 0 || log > l.best) {
		if n := len(open.times); n == open.rising && request == open.first+n && (n == 0 || log >= open.times[n-1]) {
			open.rising++
		}
		open.times = append(open.times, log)
		if l.count > 0 && log > l.limit() {
			open.slow++
		}
	}
	isQueue := l.count == 0 && open.isQueue()
	if len(open.times) < open.size*8/9 && open.ended < open.size && open.slow <= open.size/2 && !isQueue {
		return s, false
	}
	s = *open
	l.samples = slices.Delete(l.samples, i, i+1)
	return s, len(s.times) > s.size/2
}

// measure draws the conclusions of a sample.
func (l *latency) measure(s sample, paused bool) {
	slices.Sort(s.times)
	// In a queue all wait. Some services answer a part of the requests late.
	quarter := s.times[min((s.size-s.untimed)/4, len(s.times)-1)]
	median, spread := s.median(), 0.0
	for _, t := range s.times {
		spread += math.Abs(t-median) / float64(len(s.times))
	}
	if l.count++; l.count == 1 {
		l.fewest = max(s.inFlight, leastSample)
		// The median of requests that wait for each other would be no best time.
		if l.usual, l.best, l.spread = median, max(s.times[1], median-spread), spread; !s.isMeasured() {
			l.usual, l.best, l.spread = s.times[0], s.times[0], 0
		}
		if s.isQueue() {
			l.best, l.spread = s.times[0], 0
			perSecond := float64(s.answered-1) / (time.Since(s.left) - since(l.best)).Seconds()
			s.inFlight = int(math.Round(perSecond * since(median).Seconds()))
			l.queues(s, median)
		}
		return
	}
	l.usual += (median - l.usual) * sampleWeight
	switch {
	case s.left.Before(l.measured): // of another number in flight
		// In a queue, times grow with the number in flight.
		more, longer := float64(s.inFlight)/l.last.inFlight, median-l.last.median
		if s.isMeasured() && l.places > 0 && more > manyMore && longer > -doubtful && longer < math.Log(more)/2 {
			l.hasSlowed(median)
		}
	case (median > l.limit() || !s.isMeasured()) && quarter > l.best+doubtful:
		l.slow++
		if median-l.best > 1.4*(l.limit()-l.best) {
			l.slow++
		}
		if l.slow > 1 && !paused {
			l.queues(s, median)
		}
	default:
		l.flows(s, median, spread)
	}
}

// hasSlowed is called when the service itself takes longer than it did.
func (l *latency) hasSlowed(time float64) {
	l.best, l.usual = time, time
	l.places, l.returns, l.slow, l.first.inFlight = 0, false, 0, 0
	l.lone.slow, l.lone.times = 0, 0
}

// queues is called when responses have waited for each other: too many requests are in flight.
// The new limit is a little less than the service works on at once, so that the next samples
// measure the best time. If requests take as long although far fewer are in flight, or far more, or
// each is alone, the service itself has become slower. If they do not, it may only have stopped for a
// while: then each response allows one more, up to what had not waited before.
func (l *latency) queues(s sample, median float64) {
	now, took := time.Now(), since(median)
	if l.slow, l.usual = 0, median; !s.isMeasured() {
		l.usual -= math.Ln2 // no more is known
	}
	if l.first.inFlight == 0 {
		l.first.inFlight, l.first.median, l.first.drained = s.most, median, now.Add(2*took)
		if l.first.with = s.inFlight; !s.isMeasured() {
			l.first.with = 0
		}
	}
	if s.isMeasured() && s.most <= l.first.inFlight*2/3 && s.left.After(l.first.drained) && l.first.median-median < doubtful {
		l.hasSlowed(median)
		return
	}
	l.last.inFlight, l.last.median = float64(s.inFlight+s.most)/2, median
	l.measured, l.base = now.Add(took), 2
	places := max(1, drained*float64(s.inFlight)*math.Exp(l.best-median))
	switch {
	case !s.isMeasured() && l.places > 0: // the service may still work on what callers have left
		places = max(1, l.places/2)
	case s.isMeasured() && !l.returns:
		l.proven = max(l.proven, places/drained)
	}
	if l.returns && l.places > l.lowest { // what was proven is too many now
		l.proven = max(places, l.proven/2)
	}
	l.places, l.lowest, l.lowered, l.returns = places, places, now, true
}

// flows is called when responses have not waited for each other: more requests may be in flight.
func (l *latency) flows(s sample, median, spread float64) {
	if l.first.inFlight > 0 {
		l.usual = median
		// by Little's law, with a best time that is measured now
		works := float64(l.first.with) * math.Exp(min(0, median-l.first.median))
		if s.isMeasured() && s.most <= l.first.inFlight*2/3 {
			l.proven = max(l.proven, works)
		}
	}
	l.slow, l.first.inFlight = 0, 0
	l.proven = max(l.proven, float64(s.inFlight)*math.Exp(min(0, l.best-median)))
	l.returns = l.returns && l.places < drained*l.proven
	weight := max(bestWeight, 1/float64(l.count))
	rise := min(bestWeight, time.Since(l.flowed).Seconds()/bestRises.Seconds())
	l.flowed = time.Now()
	switch {
	case l.base > 0, median < l.best-queued: // it was that of a service that started
		l.base = max(0, l.base-1)
		l.best += (median - l.best) * sampleWeight
	case median < l.best: // one sample may be lucky
		l.best += (median - l.best) * bestWeight
	case l.places == 0 && s.inFlight <= l.fewest:
		l.best += (median - l.best) * weight
	case l.places == 0: // some of them may have waited
		l.best += (median - l.best) * rise
	}
	l.spread += (spread - l.spread) * weight
	if l.places += l.places * placesGrowth; l.places > anyLevel {
		l.places = 0
	}
}

// Usual is the time within which most responses come; 0: it is not known.
func (w *Window) Usual() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.usual()
}

// Overdue is a time after which no response comes from a service that works; 0: it is not known.
func (w *Window) Overdue() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latency.count == 0 {
		return 0
	}
	return w.overdue()
}

func (w *Window) overdue() time.Duration {
	if w.latency.count == 0 {
		return max(w.patience, time.Duration(4*safely*float64(w.latency.longest)))
	}
	return max(w.patience, 4*since(w.latency.usual+3*w.latency.spread))
}

// typical is how long a response takes; 0: nothing has ever worked.
func (w *Window) typical() time.Duration {
	if w.latency.count == 0 {
		return w.latency.longest
	}
	return since(w.latency.usual)
}

// isSilent reports whether nothing has succeeded for so long that no response is to be expected.
func (w *Window) isSilent() bool { return time.Since(w.quiet()) >= w.overdue() }

// quiet is since when nothing has succeeded although requests were in flight.
func (w *Window) quiet() time.Time {
	if w.latency.flying.After(w.latency.worked) {
		return w.latency.flying
	}
	return w.latency.worked
}

// mayTry reports whether requests leave one by one, because the service is silent. The next leaves
// when it has been silent for twice as long, and waits for none before it: those may never have a
// response.
func (w *Window) mayTry() bool {
	return w.latency.count > 0 && w.inFlight > 0 && !w.paused && w.isSilent()
}

// usual is longer if requests wait for their places: those that leave are then the last ones that
// have time for a response, also if the service has just become slower. A lookup that is too late
// loses nothing.
func (w *Window) usual() time.Duration {
	switch l := &w.latency; {
	case l.count == 0:
		return time.Duration(safely * float64(w.rtt))
	case w.patient, w.starting() && l.places == 0:
		return since(l.usual + l.spread)
	case l.places == 0:
		return since(l.usual + 3*l.spread)
	default:
		return max(time.Duration(safely*float64(since(l.limit()))), since(l.usual+l.spread))
	}
}
