package flow

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A healthy service takes some time for each request. One with places works on so many requests
// at once, and the others queue there.
type healthy struct {
	latency time.Duration
	spread  float64       // uniform, to both sides; below zero, the sigma of a lognormal tail
	first   time.Duration // of the first response, if it is not the latency
	places  int
	forEver bool                            // it works on what it got, even if the caller has left
	becomes func(now time.Duration) float64 // times the latency
	fails   service                         // nil: nothing does
}

// Submits are calls that arrive one by one, each with a deadline.
type submits struct {
	perSecond float64
	during    time.Duration
	bursts    []burst
	deadline  time.Duration
}

type burst struct {
	at time.Duration
	n  int
}

// Ends counts what became of them.
type ends struct{ accepted, failed, notSent, unknown int }

func (e ends) all() int { return e.accepted + e.failed + e.notSent + e.unknown }

func (e *ends) add(o ends) {
	*e = ends{e.accepted + o.accepted, e.failed + o.failed, e.notSent + o.notSent, e.unknown + o.unknown}
}

func (s submits) arrivals() (at []time.Duration) {
	for i := range int(s.perSecond * s.during.Seconds()) {
		at = append(at, time.Duration(float64(i)/s.perSecond*float64(time.Second)))
	}
	for _, b := range s.bursts {
		for range b.n {
			at = append(at, b.at)
		}
	}
	slices.Sort(at)
	return at
}

// server returns a function that says when a request that arrives has its response.
func (h healthy) server(seed uint64) func(now, deadline time.Duration) (done time.Duration) {
	random := rand.New(rand.NewPCG(seed, 11))
	free := make([]time.Duration, h.places)
	n := 0
	return func(now, deadline time.Duration) time.Duration {
		factor := 1 - h.spread + 2*h.spread*random.Float64()
		if h.spread < 0 {
			factor = math.Exp(-h.spread*random.NormFloat64() - h.spread*h.spread/2)
		}
		if h.becomes != nil {
			factor *= h.becomes(now)
		}
		took := time.Duration(float64(h.latency) * factor)
		if n++; n == 1 && h.first > 0 {
			took = h.first
		}
		if h.places == 0 {
			return now + took
		}
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		if !h.forEver && free[first] >= deadline {
			return deadline + 1
		}
		free[first] = max(now, free[first]) + took
		return free[first]
	}
}

type sentSubmit struct {
	at      time.Time
	began   time.Time
	request int
	late    bool
	failed  bool
}

type sentSubmits []sentSubmit

func (f sentSubmits) Len() int           { return len(f) }
func (f sentSubmits) Less(i, j int) bool { return f[i].at.Before(f[j].at) }
func (f sentSubmits) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *sentSubmits) Push(x any)        { *f = append(*f, x.(sentSubmit)) }
func (f *sentSubmits) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// byHand sends each call at once.
func byHand(seed uint64, h healthy, s submits) (e ends) {
	server := h.server(seed)
	for _, at := range s.arrivals() {
		if server(at, at+s.deadline) <= at+s.deadline {
			e.accepted++
		} else {
			e.unknown++
		}
	}
	return e
}

// throughWindow sends each call when the window lets it, unless it is too late. It also returns how
// long each one that was sent has waited, but for the first, which wait for a response.
func throughWindow(t *testing.T, seed uint64, h healthy, s submits) (e ends, waits []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		server, arrivals := h.server(seed), s.arrivals()
		w := New(false, probes(rand.New(rand.NewPCG(seed, 13))))
		w.waiting = 1
		began := time.Now()
		var line []time.Duration
		var air sentSubmits
		for len(arrivals) > 0 || len(line) > 0 || len(air) > 0 {
			now := time.Since(began)
			for len(air) > 0 && !air[0].at.After(time.Now()) {
				f := heap.Pop(&air).(sentSubmit)
				switch {
				case f.late:
					e.unknown++
					w.Late(f.request, time.Since(f.began), "late")
				case f.failed:
					e.failed++
					w.Failed(f.request, time.Since(f.began), "503")
				default:
					e.accepted++
					w.Succeeded(f.request, time.Since(f.began))
				}
			}
			for len(arrivals) > 0 && arrivals[0] <= now {
				line, arrivals = append(line, arrivals[0]), arrivals[1:]
			}
			usual := w.usual()
			for len(line) > 0 && (line[0] < now && line[0]+s.deadline-now < usual || w.State().Paused && time.Until(w.State().Next) > 0) {
				line = line[1:]
				e.notSent++
			}
			for len(line) > 0 {
				request, ok := w.Take()
				if !ok {
					break
				}
				if line[0] >= 2*h.latency {
					waits = append(waits, now-line[0])
				}
				deadline := line[0] + s.deadline
				line = line[1:]
				done := server(now, deadline)
				failed := h.fails != nil && h.fails(now, len(air)+1)
				f := sentSubmit{began.Add(min(done, deadline)), time.Now(), request, done > deadline, failed}
				heap.Push(&air, f)
			}
			var next time.Time
			earliest := func(t time.Time) {
				if next.IsZero() || t.Before(next) {
					next = t
				}
			}
			if len(air) > 0 {
				earliest(air[0].at)
			}
			if len(arrivals) > 0 {
				earliest(began.Add(arrivals[0]))
			}
			if len(line) > 0 {
				if due := w.Due(time.Time{}); !due.IsZero() {
					earliest(due)
				}
				earliest(began.Add(max(line[0]+s.deadline-usual, now) + 1))
			}
			if next.IsZero() {
				break
			}
			time.Sleep(max(0, time.Until(next)))
		}
	})
	return e, waits
}
