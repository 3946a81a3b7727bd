package flow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Calls with deadlines at a healthy service, however slow it is, end as they would by hand, and
// do not wait. All draws have a fixed seed.
func TestSlowServices(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	for _, latency := range []time.Duration{20 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
		for _, spread := range []float64{0, 0.3, 0.5, -0.5} {
			for _, rate := range []float64{1, 20, 200} {
				for _, times := range []float64{2.5, 10} {
					s := submits{perSecond: rate, during: max(20*time.Second, 8*latency), deadline: time.Duration(times * float64(latency))}
					asByHand(t, fmt.Sprintf("%v a second, deadline %v", rate, s.deadline), healthy{latency: latency, spread: spread}, s)
				}
			}
			for _, n := range []int{1, 10, 200, 500} {
				again := 20 * latency
				s := submits{bursts: []burst{{0, n}, {again, n}, {again + 2*memory, n}}, deadline: 3 * latency}
				asByHand(t, fmt.Sprintf("%d at once, again, and after a rest, deadline %v", n, s.deadline), healthy{latency: latency, spread: spread}, s)
			}
		}
	}
	for _, rate := range []float64{0.5, 1, 20} {
		s := submits{perSecond: rate, during: time.Minute, deadline: 15 * time.Second}
		asByHand(t, fmt.Sprintf("a cold start, %v a second", rate), healthy{latency: 300 * time.Millisecond, first: 10 * time.Second}, s)
	}
	busy := func(now time.Duration) float64 { // the machine, every other second
		return 1 + 7*float64(now/time.Second%2)
	}
	s := submits{perSecond: 500, during: 20 * time.Second, deadline: 50 * time.Millisecond}
	asByHand(t, "500 a second beside other work", healthy{latency: time.Millisecond, spread: 0.2, becomes: busy}, s)
}

// Of services that are only slow, drawn at random with a long tail, few lose more than one call in a
// hundred because quick responses were luck.
func TestSlowServicesAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	const draws, most = 600, 16
	var lost []string
	for seed := range uint64(draws) {
		random := rand.New(rand.NewPCG(seed, 7))
		between := func(least, most float64) float64 { return least * math.Exp(random.Float64()*math.Log(most/least)) }
		h := healthy{latency: time.Duration(between(0.02, 8) * float64(time.Second)), spread: -0.5}
		s := submits{perSecond: between(1, 200), during: max(30*time.Second, 20*h.latency)}
		s.deadline = time.Duration([]float64{2.5, 3, 4, 8}[random.IntN(4)] * float64(h.latency))
		if random.IntN(2) == 0 {
			gap, n := time.Duration(between(5, 20)*float64(h.latency)), int(between(1, 500))
			for at := time.Duration(0); at < s.during; at += gap {
				s.bursts = append(s.bursts, burst{at, n})
			}
			s.perSecond, s.deadline = 0, max(s.deadline, 3*h.latency)
		}
		e, _ := throughWindow(t, seed, h, s)
		if hand := byHand(seed, h, s); float64(hand.accepted-e.accepted) > 1+0.01*float64(hand.accepted) {
			lost = append(lost, fmt.Sprintf("draw %d, latency %v: %+v, by hand %+v", seed, h.latency, e, hand))
		}
	}
	t.Logf("%d of %d draws lose calls", len(lost), draws)
	if len(lost) > most {
		t.Errorf("missed, at most %d: %s", most, strings.Join(lost, "\n"))
	}
}

func asByHand(t *testing.T, name string, h healthy, s submits) {
	hand := byHand(1, h, s)
	e, waits := throughWindow(t, 1, h, s)
	slices.Sort(waits)
	if len(waits) == 0 {
		waits = []time.Duration{0}
	}
	line := fmt.Sprintf("%v, spread %v, %s: %+v, by hand %+v, waits %v at the median, %v at p99", h.latency, h.spread, name, e, hand, waits[len(waits)/2], waits[len(waits)*99/100])
	// A burst waits for the first responses, which costs a few of those with a long tail.
	few := 0.01
	if len(s.bursts) > 0 && h.spread < 0 {
		few = 0.03
	}
	all := float64(e.all())
	waited := s.bursts == nil && h.first == 0 && waits[len(waits)*99/100] > h.latency/20
	if float64(hand.accepted-e.accepted) > few*all+3 || float64(e.unknown-hand.unknown) > few*all+3 || waited {
		t.Error("missed: " + line)
	} else {
		t.Log(line)
	}
}

// Requests that were not sent do not make the others look slow.
func TestUsualAmongUnsentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		for range 4 { // samples
			var requests []int
			for range leastSample {
				request, _ := w.Take()
				requests = append(requests, request)
			}
			for i, request := range requests {
				switch {
				case i < 4:
					w.Ignored(request, 0)
				case i < 8:
					time.Sleep(5 * time.Millisecond)
					w.Succeeded(request, 20*time.Millisecond)
				default:
					time.Sleep(time.Second)
					w.Succeeded(request, time.Second)
				}
			}
		}
		if usual := w.Usual(); usual > 100*time.Millisecond {
			t.Errorf("one of five responses takes a second, the others 20 ms: %v is usual", usual)
		}
	})
}

// A service that becomes slower, at once or little by little, is not throttled for that for longer
// than some seconds, and what is not sent then is not unknown.
func TestSlowerService(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	const ms, change, end = time.Millisecond, time.Minute, 5 * time.Minute
	for _, test := range []struct {
		before, after time.Duration
		perSecond     float64
		deadline      time.Duration
	}{
		{20 * ms, 500 * ms, 50, 5 * time.Second},
		{20 * ms, time.Second, 200, 5 * time.Second},
		{50 * ms, 200 * ms, 100, 500 * ms},
		{50 * ms, 500 * ms, 100, 2 * time.Second},
		{50 * ms, time.Second, 5, 5 * time.Second},
		{100 * ms, time.Second, 1, 5 * time.Second},
		{100 * ms, 2 * time.Second, 10, 5 * time.Second},
		{100 * ms, 2 * time.Second, 10, 10 * time.Second},
		{100 * ms, 2 * time.Second, 10, 2600 * ms}, // hardly longer than a response
		{100 * ms, 4 * time.Second, 10, 30 * time.Second},
		{500 * ms, 750 * ms, 20, 8 * time.Second},
		{500 * ms, 3 * time.Second, 20, 8 * time.Second},
		{time.Second, 3 * time.Second, 100, 8 * time.Second},
		{2 * time.Second, 8 * time.Second, 10, 20 * time.Second},
	} {
		for _, slope := range []time.Duration{1, 5 * time.Second, 15 * time.Second} {
			h := healthy{latency: test.before, spread: 0.2, becomes: func(now time.Duration) float64 {
				part := min(1, max(0, (now-change).Seconds()/slope.Seconds()))
				return 1 + part*(float64(test.after)/float64(test.before)-1)
			}}
			e, _ := throughWindow(t, 1, h, submits{perSecond: test.perSecond, during: end, deadline: test.deadline})
			line := fmt.Sprintf("%v to %v in %v, %v a second, deadline %v: %+v", test.before, test.after, slope, test.perSecond, test.deadline, e)
			within := 10 * time.Second
			if slope > 1 { // it looks like a queue that grows
				within = 20*time.Second + 5*test.after
			}
			if float64(e.notSent) > test.perSecond*within.Seconds() || float64(e.unknown) > 3+0.005*float64(e.all()) {
				t.Error("missed: " + line)
			} else {
				t.Log(line)
			}
		}
	}
}

// A service that stops for some seconds and works again is not taken for one that queues, or for one
// that has too many requests in flight: it costs the calls of these seconds, and about as many after
// them. What hung has its response late, or never. All draws have a fixed seed.
func TestServiceThatStops(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	const stop, end = time.Minute, 5 * time.Minute
	for _, latency := range []time.Duration{50 * time.Millisecond, time.Second, 4 * time.Second} {
		for _, perSecond := range []float64{1, 2, 10, 50} {
			for _, deadline := range []time.Duration{3 * latency, 10 * latency, 30 * time.Second} {
				for _, long := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second} {
					for _, answers := range []bool{true, false} {
						h := healthy{latency: latency, spread: 0.2, becomes: func(now time.Duration) float64 {
							switch left := stop + long - now; {
							case now < stop || left <= 0:
								return 1
							case answers:
								return 1 + float64(left)/float64(latency)
							}
							return 1e3
						}}
						s := submits{perSecond: perSecond, during: end, deadline: deadline}
						hand := byHand(1, h, s)
						e, _ := throughWindow(t, 1, h, s)
						line := fmt.Sprintf("%v, %v a second, deadline %v, stops for %v, answers %v: %+v, by hand %+v", latency, perSecond, deadline, long, answers, e, hand)
						if float64(e.all()-e.accepted) > perSecond*(2*long+10*time.Second).Seconds() || e.unknown > hand.unknown*11/10+3 {
							t.Error("missed: " + line)
						} else {
							t.Log(line)
						}
					}
				}
			}
		}
	}
}

// Nothing that was measured at an unlucky time holds a service back for good: neither its best time, if
// it has become slower while it queues, nor a first sample that was quick by chance, nor calls that end
// at their deadlines meanwhile, nor the usual time of a burst that has waited. All draws have a fixed
// seed.
func TestUnluckyMeasurementsAreCorrected(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	bursts := submits{deadline: seconds(43)}
	for at := time.Duration(0); at < 6*time.Minute; at += seconds(39) {
		bursts.bursts = append(bursts.bursts, burst{at, 1000})
	}
	for _, test := range []struct {
		name  string
		seeds []uint64
		h     healthy
		s     submits
		least int // accepted
	}{
		{"a queue that becomes slower", []uint64{2, 3, 4, 5, 6},
			healthy{latency: 200 * time.Millisecond, spread: 0.2, places: 5, becomes: func(now time.Duration) float64 {
				if now > 20*time.Second {
					return 2.8
				}
				return 1
			}},
			submits{perSecond: 70, during: 5 * time.Minute, deadline: seconds(2.9)}, 2700},
		{"a long tail", []uint64{6}, healthy{latency: seconds(5.477), spread: -0.8},
			submits{perSecond: 2.39, during: 13 * time.Minute, deadline: seconds(107)}, 1800},
		{"calls that end while a queue is measured", []uint64{26}, healthy{latency: time.Second, spread: -0.5, places: 1},
			submits{perSecond: 3, during: 5 * time.Minute, deadline: 5 * time.Second}, 200},
		{"bursts at a queue", []uint64{2, 4, 5, 7},
			healthy{latency: seconds(2.624), spread: -0.3, places: 30, becomes: func(now time.Duration) float64 {
				return 1 - 0.69*float64(int(now/seconds(25.9))%2)
			}}, bursts, 5000},
	} {
		for _, seed := range test.seeds {
			e, _ := throughWindow(t, seed, test.h, test.s)
			if line := fmt.Sprintf("%s, draw %d: %+v", test.name, seed, e); e.accepted < test.least {
				t.Error("missed: " + line)
			} else {
				t.Log(line)
			}
		}
	}
}

// Some services answer a part of the requests much later than the others. That is no queue, because
// in a queue all wait. All draws have a fixed seed.
func TestSomeResponsesTakeLonger(t *testing.T) {
	for _, latency := range []time.Duration{200 * time.Millisecond, time.Second} {
		for _, part := range []float64{0.2, 0.35, 0.5} {
			for _, times := range []float64{3, 6} {
				for _, perSecond := range []float64{5, 40} {
					random := rand.New(rand.NewPCG(1, 5))
					h := healthy{latency: latency, spread: 0.1, becomes: func(time.Duration) float64 {
						if random.Float64() < part {
							return times
						}
						return 1
					}}
					e, _ := throughWindow(t, 1, h, submits{perSecond: perSecond, during: 3 * time.Minute, deadline: 15 * latency})
					line := fmt.Sprintf("%v, %v of them %v times as long, %v a second: %+v", latency, part, times, perSecond, e)
					if e.accepted < e.all()*98/100 {
						t.Error("missed: " + line)
					} else {
						t.Log(line)
					}
				}
			}
		}
	}
}

// A service that starts answers nothing for some seconds. Soon afterwards it is known how long it
// takes, and a queue is noticed. Many of the first calls are unknown: they have waited for the start
// together, and then for each other. All draws have a fixed seed.
func TestQueueAfterAColdStart(t *testing.T) {
	const start = 8 * time.Second
	for _, latency := range []time.Duration{200 * time.Millisecond, 500 * time.Millisecond} {
		for _, load := range []float64{1.3, 2} {
			h := healthy{latency: latency, spread: 0.2, places: 3, becomes: func(now time.Duration) float64 {
				return 1 + float64(max(0, start-now))/float64(latency)
			}}
			s := submits{perSecond: load * 3 / latency.Seconds(), during: 3 * time.Minute, deadline: start + 5*time.Second}
			e, _ := throughWindow(t, 1, h, s)
			line := fmt.Sprintf("%v, %v of capacity: %+v, by hand %+v", latency, load, e, byHand(1, h, s))
			if e.unknown > e.all()/5 {
				t.Error("missed: " + line)
			} else {
				t.Log(line)
			}
		}
	}
}

// Latency is a signal: a service that queues what is too much gets less. Up to its capacity calls
// end as by hand, and beyond, most of what is possible is accepted.
func TestQueueingServices(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	for _, places := range []int{1, 3, 10, 100} {
		for _, spread := range []float64{0, 0.3, -0.5} {
			for _, load := range []float64{0.8, 1, 1.2, 2, 3} {
				for _, times := range []int{4, 20} {
					for _, forEver := range []bool{false, true} {
						if forEver && (places != 10 || load > 2) { // such a service recovers late from the first seconds
							continue
						}
						h := healthy{latency: time.Second, spread: spread, places: places, forEver: forEver}
						s := submits{perSecond: load * float64(places), during: 2 * time.Minute, deadline: time.Duration(times) * h.latency}
						name := fmt.Sprintf("%d places, spread %v, %v of capacity, deadline of %d times, works for ever %v", places, spread, load, times, forEver)
						var hand, e ends
						for seed := uint64(1); seed == 1 || seed < 6 && places < 10; seed++ { // few calls: one draw says little
							hand.add(byHand(seed, h, s))
							one, _ := throughWindow(t, seed, h, s)
							if float64(one.accepted)*max(1, load) < 0.6*float64(one.all()) {
								t.Errorf("missed: %s, draw %d: %+v", name, seed, one)
							}
							e.add(one)
						}
						all := float64(e.all())
						accepted, unknown := 0.75*all/max(1, load), 0.06*all
						if load <= 1 {
							accepted, unknown = 0.97*float64(hand.accepted), float64(hand.unknown)+0.01*all
						}
						if places == 1 && spread < 0 { // who knows the place, and sends one by one, loses 8 % here
							unknown += 0.03 * all
						}
						line := fmt.Sprintf("%s: %+v, by hand %+v", name, e, hand)
						if float64(e.accepted) < accepted || float64(e.unknown) > unknown {
							t.Error("missed: " + line)
						} else {
							t.Log(line)
						}
					}
				}
			}
		}
	}
}
