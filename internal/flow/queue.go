package flow

import "time"

const (
	groupSize = 20 // requests, or a quarter of those in flight
	longer    = 2  // times the best time
	noise     = 10 * time.Millisecond
	drained   = 0.9 // of what the service works on at once
	slower    = 0.7 // times as long with half as many in flight
	perTrip   = 24  // the places grow by one in so many
	noPlaces  = 1e4
)

// A queue is the queueing delay of a service that takes what is too much, and lets it wait. In a queue all
// wait: even the quickest response of a group takes twice as long as at best. Then a little less than the
// service works on at once, by Little's law, may be in flight, and a little more in each round
// trip in which nothing waits. If half as many in flight take as long, nothing has waited: the
// service itself has become slower, and no queue is believed for a minute, then for two, and so on.
type queue struct {
	best   time.Duration // of the quickest of a group, while none waited; 0: not known
	mean   time.Duration // of all then
	seen   time.Time     // when that was last seen
	places float64       // may be in flight; 0: no limit is known
	grown  time.Time     // the places, last
	group  *group        // of the requests that leave
	slow   int           // groups in a row
	from   time.Time     // groups that left before belong to other places

	full struct { // the queue as it was found, until it is compared
		with float64       // in flight; 0: there is nothing to compare
		took time.Duration // the quickest
	}
	until time.Time // no queue is believed
	long  time.Duration
}

// A group is requests that left one after the other. Who came back first says nothing: by
// their order of leaving, quick ones count as much as slow ones.
type group struct {
	left     time.Time // the first
	size     int
	sent     int
	ended    int
	answered bool
	quick    time.Duration // the quickest response
	longest  time.Duration // wait
	with     int           // in flight, added
	judged   bool
}

// limit is how long the quick responses may take if nothing waits.
func (q *queue) limit() time.Duration { return max(longer*q.best, q.best+noise) }

func (q *queue) leaves(f *flight) {
	if q.group == nil || q.group.sent == q.group.size {
		q.group = &group{left: f.left, size: max(groupSize, f.with/4)}
	}
	q.group.sent++
	q.group.with += f.with
	f.group = q.group
}

// responds notes the time of a response.
func (q *queue) responds(f *flight, took time.Duration) {
	g := f.group
	if !g.answered || took < g.quick {
		g.answered, g.quick = true, took
	}
}

// ends notes the end of a request, after a wait that says something unless it is 0. A group is
// judged as soon as all of it has left and one is answered.
func (q *queue) ends(w *Window, f *flight, waited time.Duration, now time.Time) {
	g := f.group
	g.ended++
	g.longest = max(g.longest, waited)
	switch {
	case g.judged, g.sent < g.size, !g.answered && g.ended < g.size:
	case g.left.Before(q.from):
		g.judged = true
	case g.answered:
		g.judged = true
		q.judge(w, g, g.quick, now)
	case q.best > 0 && g.longest > q.limit():
		g.judged = true
		q.judge(w, g, g.longest, now)
	}
}

// judge says whether the requests of a group have waited for each other.
func (q *queue) judge(w *Window, g *group, quick time.Duration, now time.Time) {
	with := float64(g.with) / float64(g.size)
	if full := &q.full; full.with > 0 && with <= full.with/2+0.5 {
		full.with = 0
		if quick.Seconds() > slower*full.took.Seconds() {
			q.best, q.mean, q.seen, q.places = quick, w.rtt, now, 0
			q.long = doubled(q.long)
			q.until = now.Add(q.long)
		}
	}
	switch {
	case q.best == 0:
		q.best, q.mean, q.seen = quick, w.rtt, now
	case quick <= q.limit():
		q.flows(w, quick, now)
	case now.Before(q.until):
	default:
		if q.slow++; q.slow > 1 || q.places > 0 {
			q.waits(g, with, quick, now)
		}
	}
}

// waits is called when requests have waited for each other.
func (q *queue) waits(g *group, with float64, quick time.Duration, now time.Time) {
	q.slow = 0
	works := with * q.mean.Seconds() / (q.mean + quick - q.best).Seconds()
	q.places = max(1, with/4, drained*works)
	if q.full.with == 0 && g.answered {
		q.full.with, q.full.took = with, quick
		q.places = min(q.places, max(1, with/2))
	}
	q.from = now.Add(2 * quick)
}

// flows is called when requests have not waited for each other.
func (q *queue) flows(w *Window, quick time.Duration, now time.Time) {
	q.slow = 0
	if q.places > 0 && now.Sub(q.grown) >= quick {
		q.grown = now
		if q.places += q.places / perTrip; q.places > noPlaces {
			q.places = 0
		}
	}
	// The best time rises slowly, because a queue may grow slowly, and not beside one that is known.
	weight := min(now.Sub(q.seen).Seconds()/60, 1)
	switch {
	case quick < q.best:
		weight = min(now.Sub(q.seen).Seconds()/15, 1.0/4)
	case q.places > 0:
		weight = 0
	}
	q.best += time.Duration(weight * float64(quick-q.best))
	q.mean, q.seen = w.rtt, now
}
